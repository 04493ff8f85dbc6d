//! `Responder`: PDUs for the host, with the digests and the alignment that it chose.

use ssdlab_engine::{Operation, SendBuffer, SendPosition};
use ssdlab_nvme::{Completion, Status};
use ssdlab_wire::ReadFn;
use zerocopy::{FromZeros, Immutable, IntoBytes};

use super::pdu::{
    C2H_DATA, C2H_TERM_REQ, CAPSULE_RESP, CapsuleResp, CommonHeader, DDGST, DIGEST_BYTES, Data,
    FatalError, HDGST, IC_RESP, ICResp, LAST_PDU, MAXH2CDATA, R2T, READY_TO_TRANSFER, SUCCESS,
    TermReq,
};

/// What a connection's `ICReq` chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PduFormat {
    /// The enabled digests: `HDGST`, `DDGST`.
    pub dgst: u8,
    /// Data for the host starts at a multiple of this many bytes (HPDA).
    pub data_alignment: usize,
}

impl PduFormat {
    pub fn ic_resp(self, out: &mut Vec<u8>) {
        let ch = Self::default().ch::<ICResp>(IC_RESP, 0, 0, 0);
        let maxh2cdata = (MAXH2CDATA as u32).into();
        out.extend(ICResp { ch, dgst: self.dgst, maxh2cdata, ..ICResp::new_zeroed() }.as_bytes());
    }

    /// Adds a `C2HTermReq`; `received` is the start of the offending PDU.
    pub fn c2h_term_req(out: &mut Vec<u8>, error: FatalError, received: &[u8]) {
        let (fes, fei) = error.fields();
        let ch = Self::default().ch::<TermReq>(C2H_TERM_REQ, 0, 0, received.len());
        let pdu = TermReq { ch, fes: fes.into(), fei: fei.into(), ..TermReq::new_zeroed() };
        out.extend(pdu.as_bytes());
        out.extend(received);
    }

    /// Adds an R2T for all data of a command; its CID is the transfer tag too.
    pub fn r2t(self, out: &mut Vec<u8>, cid: u16, length: u32) {
        let ch = self.ch::<R2T>(READY_TO_TRANSFER, 0, 0, 0);
        let (cccid, ttag, r2tl) = (cid.into(), cid.into(), length.into());
        self.put(out, &R2T { ch, cccid, ttag, r2tl, ..R2T::new_zeroed() });
    }

    /// Adds the header of a `C2HData`, whose data follows; with `success` no `CapsuleResp` does.
    fn c2h_data(self, out: &mut Vec<u8>, cid: u16, length: u32, success: bool) {
        let header_bytes = size_of::<Data>() + self.digest_bytes(HDGST);
        let pdo = header_bytes.next_multiple_of(self.data_alignment.max(4));
        let after = pdo - header_bytes + length as usize + self.digest_bytes(DDGST);
        let flags = LAST_PDU | if success { SUCCESS } else { 0 } | self.dgst & DDGST;
        let ch = self.ch::<Data>(C2H_DATA, flags, pdo, after);
        let (start, cccid, datal) = (out.len(), cid.into(), length.into());
        self.put(out, &Data { ch, cccid, datal, ..Data::new_zeroed() });
        out.resize(start + pdo, 0);
    }

    /// Adds the digest of data that started at a position.
    fn data_digest(self, out: &mut SendBuffer, start: SendPosition) {
        if self.dgst & DDGST != 0 {
            let digest = out.pieces_since(start).fold(0, crc32c::crc32c_append);
            out.bytes().extend(digest.to_le_bytes());
        }
    }

    /// CH of a PDU with the header `H`, which `after` bytes follow.
    fn ch<H>(self, pdu_type: u8, flags: u8, pdo: usize, after: usize) -> CommonHeader {
        let plen = size_of::<H>() + self.digest_bytes(HDGST) + after;
        CommonHeader {
            pdu_type,
            flags: flags | self.dgst & HDGST,
            hlen: size_of::<H>() as u8,
            pdo: pdo as u8,
            plen: (plen as u32).into(),
        }
    }

    fn put(self, out: &mut Vec<u8>, header: &(impl IntoBytes + Immutable)) {
        out.extend(header.as_bytes());
        if self.dgst & HDGST != 0 {
            out.extend(crc32c::crc32c(header.as_bytes()).to_le_bytes());
        }
    }

    fn digest_bytes(self, digest: u8) -> usize {
        if self.dgst & digest == 0 { 0 } else { DIGEST_BYTES }
    }
}

/// Writes the replies of one queue.
#[derive(Clone, Copy)]
pub struct Responder {
    pub format: PduFormat,
    pub sqhd: u16,
    /// Whether SUCCESS in the last `C2HData` may replace a response. Not with flow control: the
    /// host needs SQHD.
    pub may_omit_response: bool,
}

impl Responder {
    pub fn response(self, out: &mut SendBuffer, cid: u16, completion: Completion) {
        let pdu = CapsuleResp {
            ch: self.format.ch::<CapsuleResp>(CAPSULE_RESP, 0, 0, 0),
            cqe: completion.cqe(self.sqhd, cid),
        };
        self.format.put(out.bytes(), &pdu);
    }

    /// Adds the reply to a read of `length` bytes that `read` appends; returns its status.
    pub fn read(self, out: &mut SendBuffer, cid: u16, length: u32, read: &ReadFn<'_>) -> Status {
        let before = out.position();
        self.format.c2h_data(out.bytes(), cid, length, self.may_omit_response);
        let start = out.position();
        if let Err(errno) = read(out) {
            let status = Status::from_errno(errno, Operation::Read);
            out.truncate(before);
            self.response(out, cid, status.into());
            return status;
        }
        self.format.data_digest(out, start);
        if !self.may_omit_response {
            self.response(out, cid, Completion::SUCCESS);
        }
        Status::SUCCESS
    }

    /// Adds a command's data for the host, if it has some and succeeded, and its completion.
    pub fn data(self, out: &mut SendBuffer, cid: u16, data: &[u8], completion: Completion) {
        if data.is_empty() || !completion.status.is_success() {
            self.response(out, cid, completion);
            return;
        }
        let omits_response = self.may_omit_response && completion == Completion::SUCCESS;
        self.format.c2h_data(out.bytes(), cid, data.len() as u32, omits_response);
        let start = out.position();
        out.bytes().extend(data);
        self.format.data_digest(out, start);
        if !omits_response {
            self.response(out, cid, completion);
        }
    }
}

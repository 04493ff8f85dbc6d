//! `DhchapKey`: the key that hosts and the drive share.
//!
//! Source: DH-HMAC-CHAP, section 8.13.5 of the Base Specification 2.0; the text form is that of
//! nvme-cli (`nvme gen-dhchap-key`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{Algorithm, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512, Key, sign, verify};
use thiserror::Error;

const PREFIX: &str = "DHHC-1:";
/// HL: bytes of SHA-256, and so of a challenge value and a response value.
pub const HASH_BYTES: usize = 32;

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages explain the errors")]
pub enum DhchapKeyError {
    #[error("it is not of the form DHHC-1:NN:BASE64: that nvme gen-dhchap-key prints")]
    Form,
    #[error("NN of DHHC-1:NN: must be 00, 01, 02 or 03")]
    Transform,
    #[error("a secret has 32, 48 or 64 bytes: after 01 32, after 02 48, after 03 64")]
    Length,
    #[error("its checksum is wrong: it was mistyped or damaged")]
    Checksum,
}

/// A challenge to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    pub t_id: u16,
    pub seqnum: u32,
    pub cval: [u8; HASH_BYTES],
}

/// A key of DH-HMAC-CHAP.
#[derive(Clone)]
pub struct DhchapKey {
    bytes: Vec<u8>,
    /// The hash that transforms the key for each host; `None` if it is used as it is.
    transform: Option<Algorithm>,
}

impl DhchapKey {
    /// Parses `DHHC-1:NN:BASE64:`, with white space around it.
    pub fn parse(text: &str) -> Result<Self, DhchapKeyError> {
        let rest = text.trim().strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(':'));
        let (number, encoded) =
            rest.and_then(|rest| rest.split_once(':')).ok_or(DhchapKeyError::Form)?;
        let transform = match number {
            "00" => None,
            "01" => Some(HMAC_SHA256),
            "02" => Some(HMAC_SHA384),
            "03" => Some(HMAC_SHA512),
            _ => return Err(DhchapKeyError::Transform),
        };
        let decoded = STANDARD.decode(encoded).map_err(|_| DhchapKeyError::Form)?;
        let (bytes, checksum) = decoded.split_last_chunk::<4>().ok_or(DhchapKeyError::Length)?;
        let fits = match transform {
            None => [32, 48, 64].contains(&bytes.len()),
            Some(algorithm) => bytes.len() == algorithm.digest_algorithm().output_len(),
        };
        if !fits {
            return Err(DhchapKeyError::Length);
        }
        if crc32fast::hash(bytes).to_le_bytes() != *checksum {
            return Err(DhchapKeyError::Checksum);
        }
        Ok(Self { bytes: bytes.into(), transform })
    }

    /// Whether this is the response value of a host that knows the key.
    pub fn verify(
        &self,
        hostnqn: &[u8],
        subnqn: &[u8],
        challenge: &Challenge,
        response: &[u8],
    ) -> bool {
        let key = match self.transform {
            None => Key::new(HMAC_SHA256, &self.bytes),
            Some(algorithm) => {
                let key = Key::new(algorithm, &self.bytes);
                let transformed = sign(&key, &[hostnqn, b"NVMe-over-Fabrics"].concat());
                Key::new(HMAC_SHA256, transformed.as_ref())
            }
        };
        let message = [
            &challenge.cval[..],
            &challenge.seqnum.to_le_bytes(),
            &challenge.t_id.to_le_bytes(),
            // SC_C: no secure channel concatenation.
            &[0],
            b"HostHost",
            hostnqn,
            // Ends the name.
            &[0],
            subnqn,
        ];
        verify(&key, &message.concat(), response).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Challenge, DhchapKey, DhchapKeyError};

    /// Keys of all kinds and the response to one challenge, computed with Python's hmac module.
    const KNOWN: [(&str, &str); 5] = [
        (
            "DHHC-1:00:ICUqLzQ5PkNITVJXXGFma3B1en+EiY6TmJ2ip6yxtrsWjykY:",
            "7e17ad91abf5858f08b9f0560cba673ca8aa1f82f2f68732f7c5759d99eaaa6b",
        ),
        (
            "DHHC-1:00:QEVKT1RZXmNobXJ3fIGGi5CVmp+kqa6zuL3Cx8zR1tvg5erv9Pn+AwgNEhccISYrMDU6P0RJ\
             TlNYXWJnbHF2ewus4rs=:",
            "4606596e5261b74764f94034fbfdaccc6345c7af48dd3e6651929d2a99478155",
        ),
        (
            "DHHC-1:01:ICUqLzQ5PkNITVJXXGFma3B1en+EiY6TmJ2ip6yxtrsWjykY:",
            "8fa25a4028c4a1a90c77d59df282bb2746d4769894bb0a381c00f4f29d49a909",
        ),
        (
            "DHHC-1:02:MDU6P0RJTlNYXWJnbHF2e4CFio+UmZ6jqK2yt7zBxsvQ1drf5Onu8/j9AgcMERYbMmAivg==:",
            "44f9f50006909fc366605f7724500b36d36821b5a92b897f046b81238012f2e3",
        ),
        (
            "DHHC-1:03:QEVKT1RZXmNobXJ3fIGGi5CVmp+kqa6zuL3Cx8zR1tvg5erv9Pn+AwgNEhccISYrMDU6P0RJ\
             TlNYXWJnbHF2ewus4rs=:",
            "875d1e77120138b512bd7c8108fbec57770c1505473574d8dd41304eee36bb48",
        ),
    ];

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let pairs = hexadecimal.as_bytes().chunks(2);
        pairs.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn the_response_of_the_published_protocol_is_accepted_for_keys_of_all_kinds() {
        let cval = std::array::from_fn(|at| at as u8);
        let challenge = Challenge { t_id: 7, seqnum: 0x0102_0304, cval };
        for (text, response) in KNOWN {
            let key = DhchapKey::parse(&format!(" {text}\n")).unwrap();
            let response = bytes(response);
            assert!(key.verify(b"nqn.host", b"nqn.drive", &challenge, &response), "{text}");
            assert!(!key.verify(b"nqn.another", b"nqn.drive", &challenge, &response));
            assert!(!key.verify(b"nqn.host", b"nqn.another", &challenge, &response));
            assert!(!key.verify(b"nqn.host", b"nqn.drive", &challenge, &response[..31]));
            for other in [
                Challenge { t_id: 8, ..challenge.clone() },
                Challenge { seqnum: 1, ..challenge.clone() },
                Challenge { cval: [9; 32], ..challenge.clone() },
            ] {
                assert!(!key.verify(b"nqn.host", b"nqn.drive", &other, &response), "{other:?}");
            }
        }
    }

    #[test]
    fn a_text_that_is_not_a_key_is_refused_with_the_reason() {
        let good = KNOWN[2].0;
        let error = |text: &str| DhchapKey::parse(text).err();
        assert_eq!(error(good), None);
        for text in
            ["", "password", &good[1..], &good[..good.len() - 1], "DHHC-1:01", "DHHC-1:01::x:"]
        {
            assert_eq!(error(text), Some(DhchapKeyError::Form), "{text}");
        }
        assert_eq!(error(&good.replace(":01:", ":04:")), Some(DhchapKeyError::Transform));
        assert_eq!(error(&good.replace(":01:", ":02:")), Some(DhchapKeyError::Length));
        assert_eq!(error("DHHC-1:00:AAAA:"), Some(DhchapKeyError::Length));
        assert_eq!(error("DHHC-1:00:AAAAAAAA:"), Some(DhchapKeyError::Length));
        assert_eq!(error(&good.replace("ICUq", "ICUr")), Some(DhchapKeyError::Checksum));
    }
}

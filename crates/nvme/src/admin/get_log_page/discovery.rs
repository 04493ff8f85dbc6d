//! The discovery log page: the address of the drive.

use zerocopy::{FromZeros, IntoBytes};

use crate::controller::Controller;
use crate::spec::log_page::{Discovery, DiscoveryEntry};
use crate::spec::{ascii, padded};

/// TRTYPE, ADRFAM, SUBTYPE and TREQ.
const TCP: u8 = 3;
const IPV4: u8 = 1;
const IPV6: u8 = 2;
const NVM_SUBSYSTEM: u8 = 2;
const SQ_FLOW_CONTROL_CAN_BE_DISABLED: u8 = 1 << 2;
/// CNTLID for dynamic controllers.
const DYNAMIC: u16 = 0xffff;
/// ASQSZ.
const ADMIN_QUEUE_ENTRIES: u16 = 32;

pub fn discovery(controller: &Controller) -> Vec<u8> {
    let mut header = Discovery::new_zeroed();
    let Some(address) = controller.parameters.address else { return header.as_bytes().to_vec() };
    header.genctr = 1.into();
    header.numrec = 1.into();
    let entry = DiscoveryEntry {
        trtype: TCP,
        adrfam: if address.is_ipv4() { IPV4 } else { IPV6 },
        subtype: NVM_SUBSYSTEM,
        treq: SQ_FLOW_CONTROL_CAN_BE_DISABLED,
        portid: 1.into(),
        cntlid: DYNAMIC.into(),
        asqsz: ADMIN_QUEUE_ENTRIES.into(),
        trsvcid: ascii(&address.port().to_string()),
        subnqn: padded(&controller.subsystem.identity.subnqn),
        traddr: ascii(&address.ip().to_string()),
        ..DiscoveryEntry::new_zeroed()
    };
    [header.as_bytes(), entry.as_bytes()].concat()
}

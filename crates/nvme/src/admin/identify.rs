//! Identify.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromZeros, IntoBytes};

use crate::controller::{Context, Controller, QUEUE_ENTRIES_MAX, VERSION};
use crate::event;
use crate::io::{COPY_RANGES_MAX, copy_range_blocks_max};
use crate::namespace::{LBA_FORMATS, Namespace};
use crate::spec::identify::{
    ControllerList, IDENTIFY_BYTES, IdentifyController, IdentifyNamespace, IndependentNamespace,
    NamespaceIdentificationDescriptor, NamespaceList, cns, nidt,
};
use crate::spec::{BROADCAST_NSID, NSID, ascii, padded};
use crate::sqe::Completion;
use crate::status::Status;
use crate::subsystem::{DISCOVERY_NQN, ERROR_LOG_ENTRIES, Subsystem};

/// In-capsule data of an I/O queue, in bytes.
const IN_CAPSULE_DATA: u32 = 16 << 10;

/// OAES: Attached Namespace Attribute Notices.
const OAES: u32 = 1 << 8;
/// CTRATT: 128-bit Host Identifier, Traffic Based Keep Alive, Endurance Groups; FDP.
const CTRATT: u32 = 1 | 1 << 6 | 1 << 4;
const CTRATT_FDP: u32 = 1 << 19;
/// OACS: Format NVM, Namespace Management, Get LBA Status.
const OACS: u16 = 1 << 1 | 1 << 3 | 1 << 9;
/// FRMW: one slot (bits 3:1), read only (bit 0).
const FRMW: u8 = 0b11;
/// LPA: SMART per namespace, Commands Supported and Effects, extended data, Supported Log Pages.
const LPA: u8 = 1 | 1 << 1 | 1 << 2 | 1 << 5;
/// WCTEMP and CCTEMP, in kelvin.
const WARNING_TEMPERATURE: u16 = 343;
const CRITICAL_TEMPERATURE: u16 = 353;
/// SANICAP: crypto erase, block erase; NODMMAS: blocks are deallocated after the operation.
const SANICAP: u32 = 0b11 | 2 << 30;
/// ONCS: Compare, Dataset Management, Write Zeroes, Save and Select in features, Verify, Copy.
const ONCS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 7 | 1 << 8;
/// FNA: a format applies to all namespaces; cryptographic erase.
const FNA: u8 = 0b101;
/// VWC: Flush supports the broadcast NSID; bit 0: volatile write cache present.
const VWC: u8 = 0b110;
/// SGLs: supported, also with an offset into the capsule.
const SGLS: u32 = 1 | 1 << 20;
/// NSFEAT: DULBE; NPWG, NPWA, NPDG, NPDA and NOWS are valid.
const NSFEAT: u8 = 1 << 2 | 1 << 4;
/// DLFEAT: deallocated blocks read as zeros; Write Zeroes can deallocate.
const DLFEAT: u8 = 1 | 1 << 3;
/// The only endurance group.
const ENDGID: u16 = 1;

/// CNS values for which CSI selects the I/O command set.
const CNS_WITH_CSI: [u8; 3] = [
    cns::IO_COMMAND_SET_NAMESPACE,
    cns::IO_COMMAND_SET_CONTROLLER,
    cns::IO_COMMAND_SET_ACTIVE_NAMESPACES,
];
/// CNS values for which NSID selects a namespace.
const CNS_OF_NAMESPACE: [u8; 6] = [
    cns::NAMESPACE,
    cns::NAMESPACE_IDENTIFICATION_DESCRIPTORS,
    cns::IO_COMMAND_SET_NAMESPACE,
    cns::INDEPENDENT_NAMESPACE,
    cns::ALLOCATED_NAMESPACE,
    cns::CONTROLLERS_OF_NAMESPACE,
];

pub fn identify(context: &mut Context<'_>) -> Result<Completion, Status> {
    let page = page(context)?;
    context.send(&page, IDENTIFY_BYTES as u64)?;
    Ok(Completion::SUCCESS)
}

/// The data structure that CNS selects; the rest of the page is zeros.
fn page(context: &Context<'_>) -> Result<Vec<u8>, Status> {
    let (controller, sqe) = (context.controller, context.sqe);
    let (subsystem, nsid) = (context.subsystem(), sqe.nsid());
    let (cns, cntid, csi) = (sqe.cdw(10) as u8, (sqe.cdw(10) >> 16) as u16, sqe.cdw(11) >> 24);
    if controller.is_discovery() {
        return match cns {
            cns::CONTROLLER => Ok(discovery_controller(controller).as_bytes().into()),
            _ => Err(Status::INVALID_FIELD),
        };
    }
    if CNS_WITH_CSI.contains(&cns) && csi != 0 {
        return Err(Status::INVALID_FIELD);
    }
    if nsid == BROADCAST_NSID && cns == cns::NAMESPACE {
        return Ok(common_namespace(subsystem).as_bytes().into());
    }
    if nsid == BROADCAST_NSID && cns == cns::CONTROLLERS_OF_NAMESPACE {
        return Err(Status::INVALID_FIELD);
    }
    if CNS_OF_NAMESPACE.contains(&cns) && nsid != NSID {
        return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let (active, allocated) = (subsystem.active_namespace(), subsystem.lock().namespace);
    Ok(match cns {
        cns::NAMESPACE => namespace(subsystem, active).as_bytes().into(),
        cns::ALLOCATED_NAMESPACE => namespace(subsystem, allocated).as_bytes().into(),
        cns::INDEPENDENT_NAMESPACE => independent_namespace(active).as_bytes().into(),
        cns::NAMESPACE_IDENTIFICATION_DESCRIPTORS if active.is_none() => {
            return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
        }
        cns::NAMESPACE_IDENTIFICATION_DESCRIPTORS => identification_descriptors(subsystem),
        cns::CONTROLLER => io_controller(controller).as_bytes().into(),
        cns::IO_COMMAND_SET_NAMESPACE | cns::IO_COMMAND_SET_CONTROLLER => Vec::new(),
        cns::ACTIVE_NAMESPACES | cns::IO_COMMAND_SET_ACTIVE_NAMESPACES => {
            namespace_list(nsid, active)?.as_bytes().into()
        }
        cns::ALLOCATED_NAMESPACES => namespace_list(nsid, allocated)?.as_bytes().into(),
        cns::CONTROLLERS_OF_NAMESPACE if active.is_none() => Vec::new(),
        cns::CONTROLLERS_OF_NAMESPACE | cns::CONTROLLERS_OF_SUBSYSTEM => {
            controller_list(subsystem, cntid).as_bytes().into()
        }
        // The only combination: the NVM command set.
        cns::IO_COMMAND_SETS => vec![1],
        _ => return Err(Status::INVALID_FIELD),
    })
}

fn common_controller(controller: &Controller) -> IdentifyController {
    let subsystem = &controller.subsystem;
    IdentifyController {
        sn: ascii(&subsystem.identity.serial),
        mn: ascii(&subsystem.identity.model),
        fr: ascii(env!("CARGO_PKG_VERSION")),
        mdts: subsystem.mdts(),
        cntlid: controller.cntlid.into(),
        ver: VERSION.into(),
        cntrltype: controller.parameters.cntrltype as u8,
        aerl: event::REQUESTS_MAX as u8 - 1,
        lpa: LPA,
        elpe: ERROR_LOG_ENTRIES as u8 - 1,
        kas: 1.into(),
        maxcmd: QUEUE_ENTRIES_MAX.into(),
        sgls: SGLS.into(),
        ..IdentifyController::new_zeroed()
    }
}

fn discovery_controller(controller: &Controller) -> IdentifyController {
    IdentifyController { subnqn: padded(DISCOVERY_NQN), ..common_controller(controller) }
}

fn io_controller(controller: &Controller) -> IdentifyController {
    let subsystem = &controller.subsystem;
    let fdp = if subsystem.geometry.streams > 0 { CTRATT_FDP } else { 0 };
    IdentifyController {
        oaes: OAES.into(),
        ctratt: (CTRATT | fdp).into(),
        oacs: OACS.into(),
        acl: 3,
        frmw: FRMW,
        wctemp: WARNING_TEMPERATURE.into(),
        cctemp: CRITICAL_TEMPERATURE.into(),
        tnvmcap: u128::from(subsystem.engine.parameters.capacity).into(),
        unvmcap: u128::from(subsystem.unallocated_bytes()).into(),
        sanicap: SANICAP.into(),
        endgidmax: ENDGID.into(),
        sqes: 6 << 4 | 6,
        cqes: 4 << 4 | 4,
        nn: NSID.into(),
        oncs: ONCS.into(),
        fna: FNA,
        vwc: VWC | u8::from(subsystem.is_volatile),
        ocfs: 1.into(),
        mnan: NSID.into(),
        subnqn: padded(&subsystem.identity.subnqn),
        ioccsz: ((64 + IN_CAPSULE_DATA) / 16).into(),
        iorcsz: 1.into(),
        msdbd: 1,
        ..common_controller(controller)
    }
}

fn common_namespace(subsystem: &Subsystem) -> IdentifyNamespace {
    let engine = &subsystem.engine;
    let mut page = IdentifyNamespace::new_zeroed();
    page.nsfeat = NSFEAT;
    page.nlbaf = LBA_FORMATS.len() as u8 - 1;
    page.dlfeat = if engine.unmapped_is_zero() { DLFEAT } else { 0 };
    for (lbaf, lbads) in page.lbaf.iter_mut().zip(LBA_FORMATS) {
        lbaf.lbads = lbads as u8;
        // Blocks that are smaller than a mapping unit perform worse.
        lbaf.rp = u8::from(engine.parameters.unit_bytes > 1 << lbads);
    }
    page
}

/// Identify Namespace; zeros without a namespace.
fn namespace(subsystem: &Subsystem, namespace: Option<Namespace>) -> IdentifyNamespace {
    let Some(namespace) = namespace else { return IdentifyNamespace::new_zeroed() };
    let (engine, lbads, blocks) = (&subsystem.engine, namespace.lbads(), namespace.blocks());
    let unit = engine.parameters.unit_bytes;
    let used = (engine.status().health.mapped_units * unit) >> lbads;
    let zeroes_based = |bytes: u64| U16::new(((bytes >> lbads).clamp(1, 1 << 16) - 1) as u16);
    let copy_blocks = copy_range_blocks_max(4096 << subsystem.mdts(), lbads);
    IdentifyNamespace {
        nsze: blocks.into(),
        ncap: blocks.into(),
        nuse: used.min(blocks).into(),
        flbas: namespace.lba_format as u8,
        nvmcap: u128::from(blocks << lbads).into(),
        npwg: zeroes_based(unit),
        npwa: zeroes_based(unit),
        npdg: zeroes_based(unit),
        npda: zeroes_based(unit),
        nows: zeroes_based(subsystem.geometry.stripe_bytes.max(unit)),
        mssrl: (copy_blocks as u16).into(),
        mcl: (copy_blocks * COPY_RANGES_MAX).into(),
        msrc: COPY_RANGES_MAX as u8 - 1,
        endgid: ENDGID.into(),
        nguid: subsystem.identity.uuid,
        ..common_namespace(subsystem)
    }
}

fn independent_namespace(active: Option<Namespace>) -> IndependentNamespace {
    let zeros = IndependentNamespace::new_zeroed();
    match active {
        Some(_) => IndependentNamespace { endgid: ENDGID.into(), nstat: 1, ..zeros },
        None => zeros,
    }
}

/// The namespace's NGUID, UUID and I/O command set (NVM: 0).
fn identification_descriptors(subsystem: &Subsystem) -> Vec<u8> {
    let uuid = subsystem.identity.uuid;
    let identifiers = [(nidt::NGUID, &uuid[..]), (nidt::UUID, &uuid), (nidt::CSI, &[0])];
    let descriptors = identifiers.map(|(nidt, nid)| {
        let nidl = nid.len() as u8;
        let header = NamespaceIdentificationDescriptor { nidt, nidl, unused_2: [0; 2] };
        [header.as_bytes(), nid].concat()
    });
    descriptors.concat()
}

/// I/O controllers whose ID is at least `cntid`.
fn controller_list(subsystem: &Subsystem, cntid: u16) -> ControllerList {
    let mut list = ControllerList::new_zeroed();
    let mut count = 0;
    for (id, cntlid) in list.ids.iter_mut().zip(subsystem.lock().io_controllers.range(cntid..)) {
        *id = (*cntlid).into();
        count += 1;
    }
    list.numids = count.into();
    list
}

/// Namespaces whose NSID is higher than `nsid`.
fn namespace_list(nsid: u32, namespace: Option<Namespace>) -> Result<NamespaceList, Status> {
    if nsid >= BROADCAST_NSID - 1 {
        return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let mut list = [U32::ZERO; 1024];
    if nsid < NSID && namespace.is_some() {
        list[0] = NSID.into();
    }
    Ok(list)
}

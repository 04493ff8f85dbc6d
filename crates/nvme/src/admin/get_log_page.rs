//! Get Log Page.

use zerocopy::little_endian::U32;
use zerocopy::{FromZeros, IntoBytes};

use crate::controller::{Context, Controller};
use crate::health;
use crate::opcode::{admin, io};
use crate::spec::identify::NamespaceList;
use crate::spec::log_page::effects::{CSUPP, LBCC, NCC, NIC};
use crate::spec::log_page::{
    CommandsSupportedAndEffects, Discovery, DiscoveryEntry, FdpConfiguration, FdpConfigurations,
    FdpEvent, FdpEvents, FdpStatistics, FirmwareSlot, ReclaimUnitHandle, ReclaimUnitHandleUsage,
    ReclaimUnitHandleUse, SanitizeStatus, SupportedLogPages, lid,
};
use crate::spec::{BROADCAST_NSID, NSID, ascii, padded};
use crate::sqe::Completion;
use crate::status::Status;
use crate::subsystem::{FDP_EVENTS_MAX, Subsystem};

/// Supported log page (LSUPP).
const LSUPP: u32 = 1;
/// TRTYPE, ADRFAM, SUBTYPE and TREQ of a discovery log page entry.
const TCP: u8 = 3;
const IPV4: u8 = 1;
const IPV6: u8 = 2;
const NVM_SUBSYSTEM: u8 = 2;
const SQ_FLOW_CONTROL_CAN_BE_DISABLED: u8 = 1 << 2;
/// CNTLID for dynamic controllers.
const DYNAMIC: u16 = 0xffff;
/// ASQSZ.
const ADMIN_QUEUE_ENTRIES: u16 = 32;
/// Reclaim Unit Handle Type (RUHT).
const INITIALLY_ISOLATED: u8 = 1;
const PERSISTENTLY_ISOLATED: u8 = 2;
/// FDP Attributes (FDPA): the configuration is valid; the write cache holds data of handles.
const VALID: u8 = 1 << 7;
const VOLATILE_WRITE_CACHE: u8 = 1 << 4;
/// Reclaim Unit Handle Attributes (RUHA): host specified.
const HOST_SPECIFIED: u8 = 1;
/// FDP Event Flags (FDPEF): placement identifier, NSID and location are valid.
const ALL_VALID: u8 = 0b111;
/// Admin commands and their effects.
const ADMIN_COMMANDS: [(u8, u32); 12] = [
    (admin::GET_LOG_PAGE, 0),
    (admin::IDENTIFY, 0),
    (admin::ABORT, 0),
    (admin::SET_FEATURES, 0),
    (admin::GET_FEATURES, 0),
    (admin::ASYNC_EVENT_REQUEST, 0),
    (admin::NAMESPACE_MANAGEMENT, LBCC | NIC),
    (admin::NAMESPACE_ATTACHMENT, NIC),
    (admin::KEEP_ALIVE, 0),
    (admin::FORMAT_NVM, LBCC | NCC),
    (admin::SANITIZE, LBCC),
    (admin::GET_LBA_STATUS, 0),
];

pub fn get_log_page(context: &mut Context<'_>) -> Result<Completion, Status> {
    let (controller, sqe) = (context.controller, context.sqe);
    let (lid, retain_event) = (sqe.cdw(10) as u8, sqe.cdw(10) >> 15 & 1 != 0);
    let offset = sqe.cdw64(12);
    if ![0, NSID, BROADCAST_NSID].contains(&sqe.nsid()) {
        return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let page = log_page(context, lid)?;
    if !offset.is_multiple_of(4) || offset > page.len() as u64 {
        return Err(Status::INVALID_FIELD);
    }
    context.send(&page[offset as usize..], (sqe.numd() + 1) * 4)?;
    if !retain_event {
        controller.lock().events.unmask(lid);
    }
    Ok(Completion::SUCCESS)
}

fn log_page(context: &Context<'_>, lid: u8) -> Result<Vec<u8>, Status> {
    let (controller, subsystem) = (context.controller, context.subsystem());
    let (lsp, lsi) = (context.sqe.cdw(10) >> 8 & 0x7f, context.sqe.cdw(11) >> 16);
    if !supported(controller).contains(&lid) {
        return Err(Status::INVALID_LOG_PAGE);
    }
    let needs_fdp = [lid::RECLAIM_UNIT_HANDLE_USAGE, lid::FDP_STATISTICS, lid::FDP_EVENTS];
    let is_of_group =
        [lid::ENDURANCE_GROUP, lid::FDP_CONFIGURATIONS].contains(&lid) || needs_fdp.contains(&lid);
    if is_of_group && lsi != 1 {
        return Err(Status::INVALID_FIELD);
    }
    if needs_fdp.contains(&lid) && subsystem.handles() == 0 {
        return Err(Status::FDP_DISABLED);
    }
    Ok(match lid {
        lid::SUPPORTED_LOG_PAGES => supported_log_pages(controller).as_bytes().into(),
        lid::ERROR_INFORMATION => health::error_information(subsystem),
        lid::SMART => health::smart(subsystem, &controller.lock().features).as_bytes().into(),
        lid::FIRMWARE_SLOT => firmware_slot().as_bytes().into(),
        lid::CHANGED_NAMESPACES => changed_namespaces(controller).as_bytes().into(),
        lid::COMMANDS_SUPPORTED_AND_EFFECTS => commands_supported(subsystem).as_bytes().into(),
        lid::ENDURANCE_GROUP => health::endurance_group(subsystem).as_bytes().into(),
        lid::FDP_CONFIGURATIONS => fdp_configurations(subsystem),
        lid::RECLAIM_UNIT_HANDLE_USAGE => reclaim_unit_handle_usage(subsystem),
        lid::FDP_STATISTICS => fdp_statistics(subsystem).as_bytes().into(),
        lid::FDP_EVENTS => fdp_events(subsystem, lsp & 1 != 0),
        lid::DISCOVERY => discovery(controller),
        lid::SANITIZE_STATUS => sanitize_status(subsystem).as_bytes().into(),
        lid::OCP_SMART => health::ocp_smart(subsystem).as_bytes().into(),
        _ => return Err(Status::INVALID_LOG_PAGE),
    })
}

/// Log pages of a controller.
fn supported(controller: &Controller) -> Vec<u8> {
    if controller.is_discovery() {
        return vec![lid::SUPPORTED_LOG_PAGES, lid::DISCOVERY];
    }
    let mut supported = vec![
        lid::SUPPORTED_LOG_PAGES,
        lid::ERROR_INFORMATION,
        lid::SMART,
        lid::FIRMWARE_SLOT,
        lid::CHANGED_NAMESPACES,
        lid::COMMANDS_SUPPORTED_AND_EFFECTS,
        lid::ENDURANCE_GROUP,
        lid::SANITIZE_STATUS,
        lid::OCP_SMART,
    ];
    if controller.subsystem.geometry.streams > 0 {
        supported.extend([
            lid::FDP_CONFIGURATIONS,
            lid::RECLAIM_UNIT_HANDLE_USAGE,
            lid::FDP_STATISTICS,
            lid::FDP_EVENTS,
        ]);
    }
    supported
}

fn supported_log_pages(controller: &Controller) -> SupportedLogPages {
    let mut page = [U32::ZERO; 256];
    for lid in supported(controller) {
        page[usize::from(lid)] = LSUPP.into();
    }
    page
}

fn firmware_slot() -> FirmwareSlot {
    let mut page = FirmwareSlot { afi: 1, ..FirmwareSlot::new_zeroed() };
    page.frs[0] = ascii(env!("CARGO_PKG_VERSION"));
    page
}

/// Namespaces that changed since the host last read this page.
fn changed_namespaces(controller: &Controller) -> NamespaceList {
    let mut list = [U32::ZERO; 1024];
    let mut state = controller.lock();
    controller.update_events(&mut state);
    if state.events.take_changed_namespace() {
        list[0] = NSID.into();
    }
    list
}

fn commands_supported(subsystem: &Subsystem) -> CommandsSupportedAndEffects {
    let mut page = CommandsSupportedAndEffects::new_zeroed();
    for (opcode, effects) in ADMIN_COMMANDS {
        page.acs[usize::from(opcode)] = (CSUPP | effects).into();
    }
    for (opcode, changes_content) in io::SUPPORTED {
        if !io::is_fdp(opcode) || subsystem.geometry.streams > 0 {
            let effects = if changes_content { LBCC } else { 0 };
            page.iocs[usize::from(opcode)] = (CSUPP | effects).into();
        }
    }
    page
}

fn sanitize_status(subsystem: &Subsystem) -> SanitizeStatus {
    let scdw10 = subsystem.lock().scdw10;
    SanitizeStatus {
        // No sanitize is in progress.
        sprog: u16::MAX.into(),
        sstat: u16::from(scdw10 != 0).into(),
        scdw10: scdw10.into(),
        // No time is reported.
        estimated_times: [U32::MAX_VALUE; 6],
        ..SanitizeStatus::new_zeroed()
    }
}

/// The address of the drive.
fn discovery(controller: &Controller) -> Vec<u8> {
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

/// The only FDP configuration: one reclaim group, a handle for each stream, superblocks as reclaim
/// units.
fn fdp_configurations(subsystem: &Subsystem) -> Vec<u8> {
    let geometry = &subsystem.geometry;
    let nruh = geometry.streams as u16;
    let ruht =
        if geometry.persistently_isolated { PERSISTENTLY_ISOLATED } else { INITIALLY_ISOLATED };
    let handles = vec![ReclaimUnitHandle { ruht, unused_1: [0; 3] }; nruh.into()];
    let size = size_of::<FdpConfiguration>() + handles.as_bytes().len();
    let size = size.next_multiple_of(8);
    let length = size_of::<FdpConfigurations>() + size;
    let header =
        FdpConfigurations { size: (length as u32).into(), ..FdpConfigurations::new_zeroed() };
    let configuration = FdpConfiguration {
        dsze: (size as u16).into(),
        fdpa: VALID | if subsystem.is_volatile { VOLATILE_WRITE_CACHE } else { 0 },
        nrg: 1.into(),
        nruh: nruh.into(),
        maxpids: (nruh - 1).into(),
        nnss: 1.into(),
        runs: geometry.superblock_bytes.into(),
        ..FdpConfiguration::new_zeroed()
    };
    let mut page = [header.as_bytes(), configuration.as_bytes(), handles.as_bytes()].concat();
    page.resize(length, 0);
    page
}

fn reclaim_unit_handle_usage(subsystem: &Subsystem) -> Vec<u8> {
    let nruh = subsystem.geometry.streams as u16;
    let used = subsystem.lock().namespace.map_or(0, |namespace| namespace.handles);
    let header = ReclaimUnitHandleUsage { nruh: nruh.into(), unused_2: [0; 6] };
    let descriptors = (0..nruh).map(|handle| {
        let ruha = if u32::from(handle) < used { HOST_SPECIFIED } else { 0 };
        ReclaimUnitHandleUse { ruha, unused_1: [0; 7] }
    });
    let descriptors: Vec<ReclaimUnitHandleUse> = descriptors.collect();
    [header.as_bytes(), descriptors.as_bytes()].concat()
}

fn fdp_statistics(subsystem: &Subsystem) -> FdpStatistics {
    let health = subsystem.engine.status().health;
    FdpStatistics {
        hbmw: u128::from(health.written_bytes).into(),
        mbmw: u128::from(health.programmed_bytes).into(),
        mbe: u128::from(health.erased_bytes).into(),
        unused_48: [0; 16],
    }
}

/// FDP events caused by hosts. Controller events are not recorded.
fn fdp_events(subsystem: &Subsystem, of_hosts: bool) -> Vec<u8> {
    let state = subsystem.lock();
    let recorded = state.fdp.events.iter().filter(|_| of_hosts).map(|event| FdpEvent {
        event_type: event.event_type,
        fdpef: ALL_VALID,
        pid: event.pid.into(),
        timestamp: (event.timestamp & ((1 << 48) - 1)).into(),
        nsid: NSID.into(),
        ruhid: event.ruhid.into(),
        ..FdpEvent::new_zeroed()
    });
    let recorded: Vec<FdpEvent> = recorded.collect();
    let header = FdpEvents { n: (recorded.len() as u32).into(), unused_4: [0; 60] };
    let mut page = [header.as_bytes(), recorded.as_bytes()].concat();
    page.resize(size_of::<FdpEvents>() + size_of::<FdpEvent>() * FDP_EVENTS_MAX, 0);
    page
}

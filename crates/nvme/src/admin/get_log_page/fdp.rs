//! Log pages of flexible data placement (FDP).

use zerocopy::{FromZeros, IntoBytes};

use crate::spec::NSID;
use crate::spec::log_page::{
    FdpConfiguration, FdpConfigurations, FdpEvent, FdpEvents, FdpStatistics, ReclaimUnitHandle,
    ReclaimUnitHandleUsage, ReclaimUnitHandleUse,
};
use crate::subsystem::{FDP_EVENTS_MAX, Subsystem};

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

/// The only configuration: one reclaim group, a handle for each stream, superblocks as reclaim
/// units.
pub fn configurations(subsystem: &Subsystem) -> Vec<u8> {
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

pub fn reclaim_unit_handle_usage(subsystem: &Subsystem) -> Vec<u8> {
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

pub fn statistics(subsystem: &Subsystem) -> FdpStatistics {
    let health = subsystem.engine.status().health;
    FdpStatistics {
        hbmw: u128::from(health.written_bytes).into(),
        mbmw: u128::from(health.programmed_bytes).into(),
        mbe: u128::from(health.erased_bytes).into(),
        unused_48: [0; 16],
    }
}

/// Events caused by hosts. Controller events are not recorded.
pub fn events(subsystem: &Subsystem, of_hosts: bool) -> Vec<u8> {
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

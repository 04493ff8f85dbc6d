//! `Target`: the controllers of all hosts, each with the connections of its queues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::key::DhchapKey;
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::sync::lock;
use ssdlab_nvme::{Controller, Subsystem};
use ssdlab_wire::{ClientLimits, Connection, Connections, Registration};

/// The subsystem, as hosts reach it over TCP.
pub struct Target {
    /// The drive and its namespace.
    pub subsystem: Arc<Subsystem>,
    /// The key that hosts authenticate with; without one any host may connect.
    pub key: Option<DhchapKey>,
    /// Limits on clients.
    pub client_limits: Arc<ClientLimits>,
    associations: Mutex<BTreeMap<u16, Arc<Association>>>,
}

/// A controller with its queues.
pub struct Association {
    pub controller: Controller,
    /// Those of the I/O queues.
    connections: Arc<Connections>,
    io_queues: Mutex<IoQueues>,
    last_traffic: Mutex<Instant>,
}

#[derive(Default)]
struct IoQueues {
    qids: BTreeSet<u16>,
    /// The controller is being removed: no further queue can be created.
    is_closed: bool,
}

/// An I/O queue of a controller; its QID is free again when this is dropped.
pub struct QueueRegistration {
    association: Arc<Association>,
    qid: u16,
    _connection: Registration,
}

impl Target {
    /// A target without controllers.
    pub fn new(
        subsystem: Subsystem,
        key: Option<DhchapKey>,
        client_limits: Arc<ClientLimits>,
    ) -> Self {
        Self { subsystem: subsystem.into(), key, client_limits, associations: Mutex::default() }
    }

    pub(crate) fn add(&self, controller: Controller) -> Arc<Association> {
        let association = Arc::new(Association {
            controller,
            connections: Arc::default(),
            io_queues: Mutex::default(),
            last_traffic: Mutex::new(wall_clock_now()),
        });
        lock(&self.associations).insert(association.controller.cntlid, Arc::clone(&association));
        association
    }

    pub(crate) fn get(&self, cntlid: u16) -> Option<Arc<Association>> {
        lock(&self.associations).get(&cntlid).cloned()
    }

    /// Removes a controller and breaks the connections of its I/O queues.
    pub(crate) fn remove(&self, cntlid: u16) {
        let removed = lock(&self.associations).remove(&cntlid);
        if let Some(association) = removed {
            lock(&association.io_queues).is_closed = true;
            association.break_io_queues();
        }
    }
}

impl Association {
    pub fn has_io_queue(&self, qid: u16) -> bool {
        lock(&self.io_queues).qids.contains(&qid)
    }

    /// Registers an I/O queue; `None` if the QID is taken or the controller is being removed.
    pub fn register(
        self: &Arc<Self>,
        qid: u16,
        connection: &Connection,
    ) -> Option<QueueRegistration> {
        let mut io_queues = lock(&self.io_queues);
        (!io_queues.is_closed && io_queues.qids.insert(qid)).then(|| {
            let association = Arc::clone(self);
            QueueRegistration { association, qid, _connection: self.connections.add(connection) }
        })
    }

    pub fn break_io_queues(&self) {
        self.connections.disconnect_all();
    }

    pub fn note_traffic(&self) {
        *lock(&self.last_traffic) = wall_clock_now();
    }

    pub fn expires(&self) -> Option<Instant> {
        let last_traffic = *lock(&self.last_traffic);
        self.controller.keep_alive_deadline(last_traffic)
    }
}

impl Drop for QueueRegistration {
    fn drop(&mut self) {
        lock(&self.association.io_queues).qids.remove(&self.qid);
    }
}

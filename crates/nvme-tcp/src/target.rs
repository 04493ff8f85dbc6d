//! `Target`: the controllers of all hosts, by number, each with the connections of its queues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::secret::Secret;
use ssdlab_engine::pacing::wall;
use ssdlab_nvme::{Controller, Subsystem};
use ssdlab_wire::Connection;
use ssdlab_wire::Resources;
use ssdlab_wire::{Connections, Registration};

/// The drive's controllers.
pub struct Target {
    /// The drive and its namespace.
    pub subsystem: Arc<Subsystem>,
    /// What hosts have to know; none where everybody may come.
    pub secret: Option<Secret>,
    /// Limits on clients.
    pub resources: Arc<Resources>,
    controllers: Mutex<BTreeMap<u16, Arc<Attached>>>,
}

/// A controller with its I/O queues.
pub struct Attached {
    pub controller: Controller,
    links: Arc<Connections>,
    queues: Mutex<Queues>,
    heard: Mutex<Instant>,
}

/// The I/O queues of a controller.
#[derive(Default)]
struct Queues {
    taken: BTreeSet<u16>,
    /// The controller was given up: no queue can be had any more.
    is_over: bool,
}

/// A queue's place at its controller, which is free again when this is dropped.
pub struct Place {
    attached: Arc<Attached>,
    queue: u16,
    _noted: Registration,
}

impl Target {
    /// A drive to which nobody is connected.
    pub fn new(subsystem: Subsystem, secret: Option<Secret>, resources: Arc<Resources>) -> Self {
        let controllers = Mutex::default();
        Self { subsystem: subsystem.into(), secret, resources, controllers }
    }

    /// Notes a new controller.
    pub fn add(&self, controller: Controller) -> Arc<Attached> {
        let attached = Arc::new(Attached {
            controller,
            links: Arc::default(),
            queues: Mutex::default(),
            heard: Mutex::new(wall()),
        });
        lock(&self.controllers).insert(attached.controller.cntlid, Arc::clone(&attached));
        attached
    }

    /// The controller of a number.
    pub fn get(&self, number: u16) -> Option<Arc<Attached>> {
        lock(&self.controllers).get(&number).cloned()
    }

    /// Gives a controller up: its I/O queues are gone.
    pub fn remove(&self, number: u16) {
        let removed = lock(&self.controllers).remove(&number);
        if let Some(attached) = removed {
            lock(&attached.queues).is_over = true;
            attached.break_off();
        }
    }
}

impl Attached {
    /// Whether an I/O queue is connected.
    pub fn has_queue(&self, queue: u16) -> bool {
        lock(&self.queues).taken.contains(&queue)
    }

    /// Gives an I/O queue its place; `None` where it is taken or the controller was given up.
    pub fn place(self: &Arc<Self>, queue: u16, link: &Connection) -> Option<Place> {
        let mut queues = lock(&self.queues);
        let is_free = !queues.is_over && queues.taken.insert(queue);
        is_free.then(|| {
            let attached = Arc::clone(self);
            Place { attached, queue, _noted: self.links.add(link) }
        })
    }

    /// Breaks the connections of its I/O queues off.
    pub fn break_off(&self) {
        self.links.break_off();
    }

    /// The host has been heard.
    pub fn hear(&self) {
        *lock(&self.heard) = wall();
    }

    /// By when the host must be heard again.
    pub fn expires(&self) -> Option<Instant> {
        let heard = *lock(&self.heard);
        self.controller.keep_alive_deadline(heard)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.attached.queues).taken.remove(&self.queue);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().expect("no panic while locked")
}

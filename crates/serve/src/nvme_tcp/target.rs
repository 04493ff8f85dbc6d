//! `Target`: the controllers of all hosts, by number, each with the connections of its queues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::secret::Secret;
use crate::link::Link;
use crate::links::{Links, Noted};
use crate::nvme::{Controller, Subsystem};
use crate::pace::wall;

/// The drive's controllers.
pub struct Target {
    pub subsystem: Arc<Subsystem>,
    /// What hosts have to know; none where everybody may come.
    pub secret: Option<Secret>,
    controllers: Mutex<BTreeMap<u16, Arc<Attached>>>,
}

/// A controller with its I/O queues.
pub struct Attached {
    pub controller: Controller,
    links: Arc<Links>,
    queues: Mutex<BTreeSet<u16>>,
    heard: Mutex<Instant>,
}

/// A queue's place at its controller, which is free again when this is dropped.
pub struct Place {
    attached: Arc<Attached>,
    queue: u16,
    _noted: Noted,
}

impl Target {
    /// A drive to which nobody is connected.
    pub fn new(subsystem: Subsystem, secret: Option<Secret>) -> Self {
        Self { subsystem: subsystem.into(), secret, controllers: Mutex::default() }
    }

    /// Notes a new controller.
    pub fn add(&self, controller: Controller) -> Arc<Attached> {
        let attached = Arc::new(Attached {
            controller,
            links: Arc::default(),
            queues: Mutex::default(),
            heard: Mutex::new(wall()),
        });
        lock(&self.controllers).insert(attached.controller.number, Arc::clone(&attached));
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
            attached.break_off();
        }
    }
}

impl Attached {
    /// Gives an I/O queue its place; `None` where it has one or no file may be open for it.
    pub fn place(self: &Arc<Self>, queue: u16, link: &Link) -> Option<Place> {
        let noted = self.links.add(link).ok()?;
        let is_free = lock(&self.queues).insert(queue);
        is_free.then(|| Place { attached: Arc::clone(self), queue, _noted: noted })
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
        self.controller.expires(heard)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.attached.queues).remove(&self.queue);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().expect("no panic while locked")
}

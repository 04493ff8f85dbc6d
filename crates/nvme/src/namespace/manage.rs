//! Namespace Management and Namespace Attachment: a smaller namespace leaves the drive more spare.

use super::Namespace;
use crate::controller::Controller;
use crate::sqe::{Completion, HostData, Sqe};
use crate::status::Status;
use crate::subsystem::{ALL, FORMATS, NAMESPACE};

/// What a management and what an attachment can ask.
const CREATE: u32 = 0;
const DELETE: u32 = 1;
const ATTACH: u32 = 0;
const DETACH: u32 = 1;

/// What a host says of a namespace, and of controllers, has so many bytes.
const BYTES: usize = 4096;
const CONTROLLERS_MAX: usize = 2047;

/// Where a host says what its namespace is to be.
const SIZE: usize = 0;
const CAPACITY: usize = 8;
const FORMAT: usize = 26;
const PROTECTION: usize = 29;
const SHARING: usize = 30;
const ACCESS_GROUP: usize = 92;
const SET: usize = 100;
const ENDURANCE_GROUP: usize = 102;
const HANDLES: usize = 392;
const HANDLE_LIST: usize = 512;

impl Controller {
    /// Creates or deletes the namespace; `None` where the power is gone.
    pub(crate) fn manage(
        &self,
        sqe: &Sqe,
        data: &dyn HostData,
    ) -> Option<Result<Completion, Status>> {
        match sqe.cdw(10) & 0xf {
            CREATE => Some(self.create(sqe, data.payload())),
            DELETE => self.delete(sqe.nsid()),
            _ => Some(Err(Status::INVALID_FIELD)),
        }
    }

    fn create(&self, sqe: &Sqe, sent: &[u8]) -> Result<Completion, Status> {
        if sqe.cdw(11) >> 24 != 0 {
            return Err(Status::IO_COMMAND_SET_NOT_SUPPORTED);
        }
        let namespace = self.wanted(sent.get(..BYTES).ok_or(Status::DATA_SGL_LENGTH_INVALID)?)?;
        self.subsystem.change_namespace(|is| {
            if is.is_some() {
                return Err(Status::NAMESPACE_IDENTIFIER_UNAVAILABLE);
            }
            *is = Some(namespace);
            Ok(Completion::with_dw0(NAMESPACE))
        })
    }

    /// The namespace that a host describes.
    fn wanted(&self, sent: &[u8]) -> Result<Namespace, Status> {
        let (blocks, capacity) = (number(sent, SIZE, 8), number(sent, CAPACITY, 8));
        let format = usize::from(sent[FORMAT]);
        if format >= FORMATS.len() || sent[PROTECTION] != 0 {
            return Err(Status::INVALID_FORMAT);
        }
        let grouped = number(sent, ACCESS_GROUP, 4) | number(sent, SET, 2);
        let is_elsewhere = number(sent, ENDURANCE_GROUP, 2) > 1;
        if sent[SHARING] != 0 || grouped != 0 || is_elsewhere || blocks == 0 || capacity > blocks {
            return Err(Status::INVALID_FIELD);
        }
        if capacity < blocks {
            return Err(Status::THIN_PROVISIONING_NOT_SUPPORTED);
        }
        if blocks > self.subsystem.engine.shape().capacity >> FORMATS[format] {
            return Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY);
        }
        let handles = self.wanted_handles(sent)?;
        let bytes = blocks << FORMATS[format];
        Ok(Namespace { format, bytes, handles, is_attached: false })
    }

    /// How many handles a host wants: the first ones in their order, or where it says nothing all.
    fn wanted_handles(&self, sent: &[u8]) -> Result<u32, Status> {
        let (count, there) = (number(sent, HANDLES, 2), self.subsystem.streams());
        let named = |place: u64| number(sent, HANDLE_LIST + 2 * place as usize, 2);
        match count {
            0 => Ok(there),
            _ if count > there.into() => Err(Status::INVALID_PLACEMENT_HANDLE_LIST),
            _ if (0..count).any(|place| named(place) != place) => {
                Err(Status::INVALID_PLACEMENT_HANDLE_LIST)
            }
            _ => Ok(count as u32),
        }
    }

    /// Deletes the namespace and all content; `None` where the power is gone.
    fn delete(&self, which: u32) -> Option<Result<Completion, Status>> {
        let deleted = match which {
            NAMESPACE | ALL => self.subsystem.change_namespace(Option::take),
            _ => None,
        };
        let Some(deleted) = deleted else {
            // To delete all of none is no error.
            let ended = if which == ALL {
                Ok(Completion::SUCCESS)
            } else {
                Err(Status::INVALID_NAMESPACE_OR_FORMAT)
            };
            return Some(ended);
        };
        let erased = self.erase();
        if erased != Some(Ok(())) {
            self.subsystem.change_namespace(|is| *is = Some(deleted));
        }
        Some(erased?.map(|()| Completion::SUCCESS))
    }

    /// Attaches the namespace to all controllers, or detaches it from all.
    pub(crate) fn attach(&self, sqe: &Sqe, data: &dyn HostData) -> Result<Completion, Status> {
        let attaches = match sqe.cdw(10) & 0xf {
            ATTACH => true,
            DETACH => false,
            _ => return Err(Status::INVALID_FIELD),
        };
        let list = data.payload().get(..BYTES).ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
        if sqe.nsid() != NAMESPACE || self.subsystem.namespace().is_none() {
            return Err(Status::INVALID_NAMESPACE_OR_FORMAT);
        }
        let count = number(list, 0, 2) as usize;
        if !(1..=CONTROLLERS_MAX).contains(&count) {
            return Err(Status::CONTROLLER_LIST_INVALID);
        }
        let named: Vec<u16> = (1..=count).map(|place| number(list, 2 * place, 2) as u16).collect();
        let there = self.subsystem.controllers();
        if !named.is_sorted_by(|one, next| one < next)
            || named.iter().any(|each| !there.contains(each))
        {
            return Err(Status::CONTROLLER_LIST_INVALID);
        }
        self.subsystem.change_namespace(|is| match is {
            None => Err(Status::INVALID_NAMESPACE_OR_FORMAT),
            Some(is) if is.is_attached == attaches => Err(if attaches {
                Status::NAMESPACE_ALREADY_ATTACHED
            } else {
                Status::NAMESPACE_NOT_ATTACHED
            }),
            Some(is) => {
                is.is_attached = attaches;
                Ok(Completion::SUCCESS)
            }
        })
    }
}

/// A little-endian number of what a host sent.
fn number(sent: &[u8], at: usize, bytes: usize) -> u64 {
    sent[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

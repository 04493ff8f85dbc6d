//! `Server`: gives each connection a thread, cuts the power under all of them, and ends them all.

#[cfg(feature = "fuzzing")]
pub mod fuzz;

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::calibration::be_punctual;
use crate::clones::Forks;
use crate::control;
use crate::listener::{Address, Door, Visitors};
use ssdlab_engine::Engine;
use ssdlab_engine::Epoch;
use ssdlab_engine::PowerCutLoss;
use ssdlab_nbd::Export;
use ssdlab_nbd::{Negotiated, Session, greet, negotiate};
use ssdlab_nvme::{Identity, Subsystem};
use ssdlab_nvme_tcp::Secret;
use ssdlab_wire::Attachments;
use ssdlab_wire::Connection;
use ssdlab_wire::Connections;
use ssdlab_wire::spawn;
use ssdlab_wire::{BusyPoll, ReceiveBuffer};
use ssdlab_wire::{Deadline, Exhausted, Limits, Notice, Resources};

/// How long a control connection may be silent that there is no thread for.
const WITHOUT_THREAD: Duration = Duration::from_secs(1);
/// Control connections at a time.
const CONTROLLERS_MAX: usize = 64;

/// What the threads share.
pub struct Shared {
    pub engine: Arc<Engine>,
    pub export: Export,
    pub forks: Forks,
    pub resources: Arc<Resources>,
    pub clients: Attachments<Connection>,
    controllers: Arc<Connections>,
}

/// A running server; dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    nbd: Option<Door>,
    nvme: Option<Door>,
    control: Option<Door>,
}

impl Server {
    /// A server that listens nowhere yet.
    pub fn new(engine: Engine, export: Export) -> Self {
        Self::limited(engine, export, Limits::default())
    }

    /// A server whose clients may take so much of this machine.
    pub fn limited(engine: Engine, export: Export, limits: Limits) -> Self {
        Self::sharing(engine, export, Resources::new(limits))
    }

    /// A server that shares the resources of another.
    pub(crate) fn sharing(engine: Engine, export: Export, resources: Arc<Resources>) -> Self {
        let (engine, forks) = (Arc::new(engine), Forks::default());
        let (clients, controllers) = (Attachments::new(Arc::clone(&engine)), Arc::default());
        let shared = Arc::new(Shared { engine, export, forks, resources, clients, controllers });
        Self { shared, nbd: None, nvme: None, control: None }
    }

    /// Starts one that listens for NBD's clients.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn start(engine: Engine, export: Export, address: &Address) -> io::Result<Self> {
        let mut server = Self::new(engine, export);
        server.listen(address)?;
        Ok(server)
    }

    /// Listens for NBD's clients. Returns where; with the port that it got.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn listen(&mut self, address: &Address) -> io::Result<Address> {
        let serving = Arc::clone(&self.shared);
        let take = move |link| serving.welcome(link, Shared::serve_nbd);
        let visitors = Visitors { name: "listener", exhausted: Exhausted::Refuse };
        let door = Door::open(visitors, address, &self.shared.resources, take)?;
        Ok(self.nbd.insert(door).address().clone())
    }

    /// Listens for hosts of `NVMe`, who have to know `secret`, if there is one. `origin` tells this
    /// drive from others of its model, together with the port. Returns where, and what the drive is
    /// called there.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn listen_for_nvme(
        &mut self,
        address: &Address,
        origin: &str,
        secret: Option<Secret>,
    ) -> io::Result<(Address, Identity)> {
        let serving = Arc::clone(&self.shared);
        let target: Arc<OnceLock<ssdlab_nvme_tcp::Target>> = Arc::default();
        let made = Arc::clone(&target);
        let visitors = Visitors { name: "nvme", exhausted: Exhausted::Refuse };
        let door = Door::open(visitors, address, &self.shared.resources, move |link| {
            let target = Arc::clone(&target);
            serving.welcome(link, move |_, link, epoch, handshake| {
                ssdlab_nvme_tcp::Session::new(link, target.wait(), epoch, handshake)?.run()
            });
        })?;
        let address = door.address().clone();
        let model = self.shared.export.description();
        let identity = Identity::new(model, &format!("{origin} {address:?}"));
        let subsystem = Subsystem::new(Arc::clone(&self.shared.engine), identity.clone());
        let resources = Arc::clone(&self.shared.resources);
        made.get_or_init(|| ssdlab_nvme_tcp::Target::new(subsystem, secret, resources));
        self.nvme = Some(door);
        Ok((address, identity))
    }

    /// Listens on a control socket too; see `control`.
    ///
    /// # Errors
    /// The socket cannot be had.
    pub fn listen_for_control(&mut self, socket: &Path) -> io::Result<()> {
        let serving = Arc::clone(&self.shared);
        let address = Address::Unix(socket.into());
        let visitors = Visitors { name: "control", exhausted: Exhausted::Serve };
        let take = move |link| serving.obey(link);
        self.control = Some(Door::open(visitors, &address, &self.shared.resources, take)?);
        Ok(())
    }

    /// The drive.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// How many clients there are.
    pub fn connections(&self) -> usize {
        self.shared.client_count()
    }

    /// Cuts the power under all clients, and turns it on again if `then_on`; `None` if it is off.
    ///
    /// # Panics
    /// Where the content's file cannot be written: a cut must not end half way.
    pub fn power_cut(&self, then_on: bool) -> Option<PowerCutLoss> {
        self.shared.power_cut(then_on)
    }

    /// Stops: no more connections, those there are broken off, the sockets removed.
    pub fn stop(&mut self) {
        (self.nbd, self.nvme, self.control) = (None, None, None);
        self.shared.clients.connections().break_off();
        self.shared.controllers.break_off();
        self.shared.forks.clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// How many clients there are.
    pub fn client_count(&self) -> usize {
        self.clients.connections().count()
    }

    /// A server of a drive that was this one; both share what clients may take.
    pub fn forked(&self, engine: Engine) -> Server {
        Server::sharing(engine, self.export.clone(), Arc::clone(&self.resources))
    }

    /// Cuts the power under all clients; see `Attachments::power_cut`.
    pub fn power_cut(&self, then_on: bool) -> Option<PowerCutLoss> {
        self.clients.power_cut(then_on)
    }

    /// Serves a client on a thread of its own. A client that comes while there is no power is
    /// disconnected at once.
    fn welcome(
        self: &Arc<Self>,
        link: Connection,
        serve: impl FnOnce(&Self, Connection, Epoch, Deadline) -> io::Result<()> + Send + 'static,
    ) {
        let Some((listed, epoch)) = self.clients.attach(&link) else { return };
        let Some((admitted, handshake)) = self.resources.admit(&link) else { return };
        let shared = Arc::clone(self);
        let started = spawn("connection", move || {
            // A client that breaks the protocol or goes away harms nobody but itself.
            be_punctual();
            let is_paced = shared.engine.clock().is_paced();
            let _ = link.widen(is_paced).and_then(|()| serve(&shared, link, epoch, handshake));
            shared.clients.finish_planned_cut();
            drop((listed, admitted));
        });
        if let Err(error) = started {
            self.resources.refuse(Notice::Threads, format_args!("no thread for it: {error}"));
        }
    }

    fn serve_nbd(&self, link: Connection, epoch: Epoch, handshake: Deadline) -> io::Result<()> {
        let mut output = link.clone();
        let mut input = ReceiveBuffer::new(BusyPoll::new(link));
        let greeting = greet(&mut input, &mut output)?;
        let mut tls = self.export.tls();
        loop {
            let needs_tls = tls.is_some();
            match negotiate(&mut input, &mut output, &self.export, greeting, needs_tls)? {
                Negotiated::Left => return Ok(()),
                Negotiated::Agreed(agreed, reply) => {
                    // From here on the connection is not broken off to make room for new ones.
                    drop(handshake);
                    output.write_all(&reply)?;
                    return Session::new(
                        input,
                        output,
                        &self.clients,
                        &self.resources,
                        epoch,
                        agreed,
                    )
                    .run();
                }
                Negotiated::StartTls => {
                    let tls = tls.take().expect("only who needs it is told to");
                    let link = tls.wrap(input.into_stream()?.into_link())?;
                    output = link.clone();
                    input = ReceiveBuffer::new(BusyPoll::new(link));
                }
            }
        }
    }

    /// Does what comes over a control connection, on a thread of its own. Where none can be had,
    /// the listener's does it, so that the server can be controlled whatever its clients do.
    fn obey(self: &Arc<Self>, link: Connection) {
        if self.controllers.count() >= CONTROLLERS_MAX {
            let why = format_args!("{CONTROLLERS_MAX} control connections are open");
            self.resources.refuse(Notice::TooMany, why);
            return;
        }
        let noted = self.controllers.add(&link);
        let (shared, its) = (Arc::clone(self), link.clone());
        let started = spawn("control", move || {
            // Who went away wants no answer.
            let _ = control::converse(&shared, its);
            drop(noted);
            shared.resources.descriptors.refill();
        });
        if let Err(error) = started {
            let why = format_args!("no thread for a control connection: {error}");
            self.resources.notices.tell(Notice::Threads, why);
            let limited = link.limit_reads(WITHOUT_THREAD);
            let _ = limited.and_then(|()| control::converse(self, link));
            self.resources.descriptors.refill();
        }
    }
}

//! `Server`: gives each connection a thread, cuts the power under all of them, and ends them all.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::control;
use crate::door::{Address, Door, spawn};
use crate::drive::Cut;
use crate::engine::Engine;
use crate::export::Export;
use crate::forks::Forks;
use crate::link::Link;
use crate::links::Links;
use crate::nbd::{Negotiated, Session, greet, negotiate};
use crate::nvme::{Identity, Subsystem};
use crate::nvme_tcp::{self, Secret};
use crate::stream::{Awake, Input};
use crate::transport::be_punctual;

/// What the threads share.
pub struct Shared {
    pub engine: Arc<Engine>,
    pub export: Export,
    pub forks: Forks,
    clients: Arc<Links>,
    controllers: Arc<Links>,
}

/// A running server; dropping it stops it.
pub struct Server {
    pub(crate) shared: Arc<Shared>,
    nbd: Option<Door>,
    nvme: Option<Door>,
    control: Option<Door>,
}

impl Server {
    /// A server that listens nowhere yet.
    pub fn new(engine: Engine, export: Export) -> Self {
        let (clients, controllers) = (Arc::default(), Arc::default());
        let (engine, forks) = (Arc::new(engine), Forks::default());
        let shared = Arc::new(Shared { engine, export, forks, clients, controllers });
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
        let door = Door::open("listener", address, take)?;
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
        let target: Arc<OnceLock<nvme_tcp::Target>> = Arc::default();
        let made = Arc::clone(&target);
        let door = Door::open("nvme", address, move |link| {
            let target = Arc::clone(&target);
            serving
                .welcome(link, move |_, link| nvme_tcp::Session::new(link, target.wait())?.run());
        })?;
        let address = door.address().clone();
        let model = self.shared.export.description();
        let identity = Identity::new(model, &format!("{origin} {address:?}"));
        let subsystem = Subsystem::new(Arc::clone(&self.shared.engine), identity.clone());
        made.get_or_init(|| nvme_tcp::Target::new(subsystem, secret));
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
        self.control = Some(Door::open("control", &address, move |link| serving.obey(link))?);
        Ok(())
    }

    /// The drive.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// How many clients there are.
    pub fn connections(&self) -> usize {
        self.shared.clients.count()
    }

    /// As `Engine::power_cut`; the clients are broken off.
    pub fn power_cut(&self, then_on: bool) -> Option<Cut> {
        self.shared.power_cut(then_on)
    }

    /// Stops: no more connections, those there are broken off, the sockets removed.
    pub fn stop(&mut self) {
        (self.nbd, self.nvme, self.control) = (None, None, None);
        self.shared.clients.break_off();
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
        self.clients.count()
    }

    /// Cuts the power under all clients.
    pub fn power_cut(&self, then_on: bool) -> Option<Cut> {
        // First nobody hears anything more: what was heard before then is done.
        self.clients.break_off();
        self.engine.power_cut(then_on)
    }

    /// Serves a client on a thread of its own; one that comes while there is no power goes at once.
    pub(crate) fn welcome(
        self: &Arc<Self>,
        link: Link,
        serve: impl FnOnce(&Self, Link) -> io::Result<()> + Send + 'static,
    ) {
        if !self.engine.power().is_on {
            return;
        }
        // No file may be left for one more client: the next may find one.
        let Ok(noted) = self.clients.add(&link) else { return };
        let shared = Arc::clone(self);
        spawn("connection", move || {
            // A client that breaks the protocol or goes away harms nobody but itself.
            be_punctual();
            let is_paced = shared.engine.clock().is_paced();
            let _ = link.widen(is_paced).and_then(|()| serve(&shared, link));
            if let Some(then_on) = shared.engine.failing() {
                shared.power_cut(then_on);
            }
            drop(noted);
        });
    }

    pub(crate) fn serve_nbd(&self, link: Link) -> io::Result<()> {
        let mut output = link.try_clone()?;
        let mut input = Input::new(Awake::new(link));
        let greeting = greet(&mut input, &mut output)?;
        let mut tls = self.export.tls();
        loop {
            let needs_tls = tls.is_some();
            match negotiate(&mut input, &mut output, &self.export, greeting, needs_tls)? {
                Negotiated::Left => return Ok(()),
                Negotiated::Agreed(agreed) => {
                    let links = &self.clients;
                    return Session::new(input, output, &self.engine, agreed, links).run();
                }
                Negotiated::StartTls => {
                    let tls = tls.take().expect("only who needs it is told to");
                    let link = tls.wrap(input.into_stream()?.into_link())?;
                    output = link.try_clone()?;
                    input = Input::new(Awake::new(link));
                }
            }
        }
    }

    /// Does what comes over a control connection, on a thread of its own.
    pub(crate) fn obey(self: &Arc<Self>, link: Link) {
        let Ok(noted) = self.controllers.add(&link) else { return };
        let shared = Arc::clone(self);
        spawn("control", move || {
            // Who went away wants no answer.
            let _ = control::converse(&shared, link);
            drop(noted);
        });
    }
}

//! Known answers: write amplification, conservation and queueing against closed forms.

mod amplification;
mod cause;
mod counts;
mod heat;
mod history;
mod life;
mod placement;
mod queue;
mod reading;
mod tables;
mod theory;

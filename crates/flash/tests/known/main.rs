//! Known answers: write amplification, conservation and queueing against closed forms.

mod amplification;
mod cause;
mod counts;
mod heat;
mod hinted;
mod history;
mod life;
mod packed;
mod placement;
mod queue;
mod reading;
mod streams;
mod tables;
mod theory;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use posthaste_jobs::Timestamp;
use tokio::task::JoinSet;

use crate::args::{Common, Setup};
use crate::figures::rounded;
use crate::load::Load;
use crate::messages::{Messages, Scheme};
use crate::receiver::Receiver;
use crate::system::System;
use crate::tally::Tally;

/// Events sent before the clock starts, to open connections and fill pools. That they arrive
/// also says that the workers work.
const WARM_UP: usize = 500;

/// Longest time in which nothing is delivered before the rest counts as lost: far longer than
/// a lease, so that it is loss and not delay.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// One system under test, warm, and all that is needed to load it: the ground for one figure.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) system: System,
    pub(crate) load: Load,
    pub(crate) tally: Arc<Tally>,
    /// Numbers of the events that the figure is over.
    pub(crate) measured: Range<usize>,
    /// Answers deliveries until dropped.
    _receiver: Option<JoinSet<()>>,
}

/// What a figure is to be taken of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) setup: Setup,
    pub(crate) scheme: Scheme,
    pub(crate) connections: u16,
    pub(crate) events: u32,
    /// Events a second; `None`: as many as the connections can.
    pub(crate) rate: Option<u32>,
    pub(crate) route: Route,
}

/// Whether the source has a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// None: events are accepted and recorded only.
    Nowhere,
    /// To the receiver.
    ToReceiver,
}

impl Trial {
    /// Starts everything, signs all requests as of `now`, and sends the warm-up.
    pub(crate) async fn start(common: &Common, plan: Plan, now: Timestamp) -> anyhow::Result<Self> {
        let receiver = match plan.route {
            Route::Nowhere => None,
            Route::ToReceiver => Some(Receiver::bind().await?),
        };
        let endpoint = receiver.as_ref().map(Receiver::address).transpose()?;
        let system = System::start(common, plan.setup, plan.scheme, endpoint).await?;

        let ingress = system.ingress();
        let measured = WARM_UP..WARM_UP + plan.events as usize;
        let messages = Messages::new(plan.scheme, ingress, measured.end, common.size as usize, now);
        let messages = Arc::new(messages);
        let tally = Arc::new(Tally::new(Arc::clone(&messages)));
        let receiver = receiver.map(|receiver| receiver.run(Arc::clone(&tally)));

        let load = Load {
            ingress,
            messages,
            tally: Arc::clone(&tally),
            connections: plan.connections,
            // The warm-up goes at full speed.
            rate: None,
        };
        let mut trial = Self {
            system,
            load,
            tally,
            measured,
            _receiver: receiver,
        };
        trial
            .warm_up(plan.route)
            .await
            .inspect_err(|_| trial.system.show_logs())?;
        trial.load.rate = plan.rate;
        Ok(trial)
    }

    async fn warm_up(&self, route: Route) -> anyhow::Result<()> {
        self.load.run(0..WARM_UP).await?;
        if route == Route::ToReceiver {
            self.tally.wait_for_deliveries(PATIENCE).await;
            let delivered = self.tally.progress().delivered;
            ensure!(
                delivered == WARM_UP,
                "only {delivered} of {WARM_UP} events of the warm-up arrived"
            );
        }
        Ok(())
    }

    /// Sends the events to be measured and returns when each has its 200.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let outcome = self.load.run(self.measured.clone()).await;
        outcome.inspect_err(|_| self.system.show_logs())
    }

    /// Returns the processor time for one event between two readings, in milliseconds, by process.
    pub(crate) fn cost(
        &self,
        before: &BTreeMap<String, Duration>,
        after: &BTreeMap<String, Duration>,
    ) -> BTreeMap<String, f64> {
        let one = |(name, after): (&String, &Duration)| {
            let spent = after.saturating_sub(*before.get(name)?);
            Some((
                name.clone(),
                rounded(spent.as_secs_f64() * 1000.0 / self.measured.len() as f64, 3),
            ))
        };
        after.iter().filter_map(one).collect()
    }
}

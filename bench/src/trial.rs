use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use posthaste_jobs::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::args::Common;
use crate::configuration::Endpoint;
use crate::figures::rounded;
use crate::load::Load;
use crate::messages::Messages;
use crate::plan::{HEALTHY, Plan, Route};
use crate::receiver::Receiver;
use crate::system::System;
use crate::tally::Tally;

/// Events sent before the clock starts, to open connections and fill pools. That they arrive
/// also says that the workers work.
const WARM_UP: usize = 500;

/// Longest time in which nothing is delivered before the rest counts as lost: far longer than
/// a lease, so that it is loss and not delay.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The endpoint beside the others, and the type of its events.
const HANGING: &str = "hanging";
/// Longer than anything that it hangs for, so that it is slow and not failing.
const HANGING_TIMEOUT: Duration = Duration::from_secs(120);

/// One system under test, warm, and all that is needed to load it: the ground for one figure.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) system: System,
    pub(crate) load: Load,
    pub(crate) tally: Arc<Tally>,
    /// Numbers of the events that the figure is over.
    pub(crate) measured: Range<usize>,
    /// Numbers of the events for the endpoint beside the others.
    pub(crate) aside: Range<usize>,
    /// How long calls are held before they are answered.
    pub(crate) hold: watch::Sender<Duration>,
    /// How long calls to the endpoint beside the others are.
    pub(crate) hold_aside: watch::Sender<Duration>,
    /// Answer deliveries until dropped.
    _receivers: [JoinSet<()>; 2],
}

impl Trial {
    /// Starts everything, signs all requests as of `now`, and sends the warm-up.
    pub(crate) async fn start(common: &Common, plan: Plan, now: Timestamp) -> anyhow::Result<Self> {
        let (receiver, beside) = (Receiver::bind().await?, Receiver::bind().await?);
        let endpoints = endpoints(plan.route, &receiver, &beside)?;
        let system = System::start(common, &plan, &endpoints).await?;

        let measured = WARM_UP..WARM_UP + plan.events as usize;
        let aside = measured.end..measured.end + plan.route.aside();
        let messages = Messages::new(plan.scheme, aside.end, common.size as usize, now, |number| {
            event_type(plan.route, number, aside.contains(&number))
        });
        let messages = Arc::new(messages);
        let tally = Arc::new(Tally::new(Arc::clone(&messages)));
        let hold = watch::Sender::new(Duration::ZERO);
        let hold_aside = watch::Sender::new(Duration::ZERO);
        let receivers = [
            receiver.run(Arc::clone(&tally), hold.subscribe()),
            beside.run(Arc::clone(&tally), hold_aside.subscribe()),
        ];

        let load = Load {
            ingress: system.ingress().into(),
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
            aside,
            hold,
            hold_aside,
            _receivers: receivers,
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
        if route != Route::Nowhere {
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

/// Returns the endpoints: those at `receiver`, and the one at `beside`.
fn endpoints(route: Route, receiver: &Receiver, beside: &Receiver) -> anyhow::Result<Vec<Endpoint>> {
    let address = receiver.address()?;
    let one = |name: String, event_types: String| Endpoint {
        name,
        address,
        event_types,
        timeout: None,
    };
    Ok(match route {
        Route::Nowhere => Vec::new(),
        Route::ToReceiver => vec![one("receiver".to_owned(), "*".to_owned())],
        Route::ToNeighbours { .. } => {
            let healthy = (0..HEALTHY).map(healthy).map(|name| one(name.clone(), name));
            let hanging = Endpoint {
                address: beside.address()?,
                timeout: Some(HANGING_TIMEOUT),
                ..one(HANGING.to_owned(), HANGING.to_owned())
            };
            healthy.chain([hanging]).collect()
        }
    })
}

fn event_type(route: Route, number: usize, aside: bool) -> String {
    match route {
        Route::Nowhere | Route::ToReceiver => "push".to_owned(),
        Route::ToNeighbours { .. } if aside => HANGING.to_owned(),
        Route::ToNeighbours { .. } => healthy(number % HEALTHY),
    }
}

fn healthy(which: usize) -> String {
    format!("healthy-{}", which + 1)
}

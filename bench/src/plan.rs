use crate::args::Setup;
use crate::fleet::Fleet;
use crate::messages::Scheme;
use crate::redis::Persistence;

/// What a figure is to be taken of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) setup: Setup,
    pub(crate) fleet: Fleet,
    /// Of the Redis, where the set-up has one.
    pub(crate) persistence: Persistence,
    pub(crate) scheme: Scheme,
    pub(crate) connections: u16,
    pub(crate) events: u32,
    /// Events a second; `None`: as many as the connections can.
    pub(crate) rate: Option<u32>,
    pub(crate) route: Route,
}

/// Where the events go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Nowhere: they are accepted and recorded only.
    Nowhere,
    /// All to one endpoint.
    ToReceiver,
    /// By turns to [`HEALTHY`] endpoints; so many more events are for one beside them.
    ToNeighbours {
        /// Events for the one.
        hanging: u32,
    },
}

/// Endpoints that the measured events are spread over where there are several.
pub(crate) const HEALTHY: usize = 4;

impl Route {
    /// Returns how many events there are beside those that are measured.
    pub(crate) fn aside(self) -> usize {
        match self {
            Self::Nowhere | Self::ToReceiver => 0,
            Self::ToNeighbours { hanging } => hanging as usize,
        }
    }
}

impl Plan {
    /// Plans a figure of one `ingress` and one `workers`, or of one `up`, with a Redis as in production.
    pub(crate) fn new(setup: Setup, connections: u16, events: u32, route: Route) -> Self {
        Self {
            setup,
            fleet: Fleet::new(setup, 1, 1),
            persistence: Persistence::EverySecond,
            scheme: Scheme::Github,
            connections,
            events,
            rate: None,
            route,
        }
    }
}

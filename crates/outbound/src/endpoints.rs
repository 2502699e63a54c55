use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use reqwest::Client;

use crate::client::client;
use crate::endpoint::Endpoint;
use crate::{BreakerState, CallError, Delivery, EndpointConfig, InvalidEndpoint, Receipt};

type ByName = BTreeMap<String, Arc<Endpoint>>;

/// The endpoints of one configuration, sharing one pooled client. Cheap to clone; clones are one.
///
/// Breakers and in-flight limits live in this process: another process learns for itself, and allows
/// as many calls again.
#[derive(Clone)]
pub struct Endpoints {
    client: Client,
    by_name: Arc<RwLock<ByName>>,
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoints").field(&self.names()).finish()
    }
}

impl Endpoints {
    /// Makes the client, and reads each entry.
    ///
    /// # Errors
    ///
    /// The first mistake in the configuration.
    pub fn new(configs: Vec<EndpointConfig>) -> Result<Self, InvalidEndpoint> {
        let client = client();
        let by_name = parse(&configs, &client, &ByName::new())?;
        Ok(Self {
            client,
            by_name: Arc::new(RwLock::new(by_name)),
        })
    }

    /// Replaces the configuration. Calls under way end by the one they began with.
    ///
    /// An endpoint keeps its breaker if neither its URL nor its breaker settings changed, and its
    /// in-flight count if its limit did not.
    ///
    /// # Errors
    ///
    /// The first mistake in the configuration, of which then nothing is taken over.
    pub fn reload(&self, configs: Vec<EndpointConfig>) -> Result<(), InvalidEndpoint> {
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        *by_name = parse(&configs, &self.client, &by_name)?;
        Ok(())
    }

    /// Sends `delivery` to the endpoint of this name; `None` if there is none.
    ///
    /// Waits up to 500 ms for a turn, then up to the endpoint's time-out for the call. Dropping the
    /// future ends the call; it then says nothing for or against the endpoint.
    pub async fn deliver(&self, endpoint: &str, delivery: Delivery) -> Option<Result<Receipt, CallError>> {
        let endpoint = self.find(endpoint)?;
        Some(endpoint.deliver(&self.client, delivery).await)
    }

    /// Returns the names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.read(|by_name| by_name.keys().cloned().collect())
    }

    /// Returns what each endpoint's breaker does at present, in order of the names.
    #[must_use]
    pub fn breakers(&self) -> Vec<(String, BreakerState)> {
        let state = |(name, endpoint): (&String, &Arc<Endpoint>)| (name.clone(), endpoint.breaker().state());
        self.read(|by_name| by_name.iter().map(state).collect())
    }

    fn find(&self, name: &str) -> Option<Arc<Endpoint>> {
        self.read(|by_name| by_name.get(name).cloned())
    }

    fn read<T>(&self, read: impl FnOnce(&ByName) -> T) -> T {
        read(&self.by_name.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn parse(configs: &[EndpointConfig], client: &Client, earlier: &ByName) -> Result<ByName, InvalidEndpoint> {
    let mut by_name = ByName::new();
    for config in configs {
        let earlier = earlier.get(&config.name).map(Arc::as_ref);
        let endpoint = Arc::new(Endpoint::new(config, client, earlier)?);
        if by_name.insert(config.name.clone(), endpoint).is_some() {
            return Err(config.invalid("name", "is there twice"));
        }
    }
    Ok(by_name)
}

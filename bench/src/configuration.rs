use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use crate::messages::{SECRET, Scheme};

/// Deliveries to an endpoint at the same time, in each process that works.
pub(crate) const MAX_IN_FLIGHT: u32 = 64;

/// An endpoint, and the events of the source that go there.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// A type, or a pattern of them.
    pub(crate) event_types: String,
    /// How long a call may take; `None`: as long as is the default.
    pub(crate) timeout: Option<Duration>,
}

/// Writes the configuration that all processes of a system share.
pub(crate) fn write(
    ledger: &str,
    queue: &str,
    scheme: Scheme,
    endpoints: &[Endpoint],
) -> Result<String, std::fmt::Error> {
    let source = scheme.name();
    let mut toml = format!(
        "[ledger]\nurl = {ledger:?}\n\n[queue]\nurl = {queue:?}\n\n\
         [log]\nformat = \"json\"\nfilter = \"warn\"\n\n\
         [[sources]]\nname = {source:?}\nscheme = {source:?}\nsecrets = [{SECRET:?}]\n",
    );
    for endpoint in endpoints {
        let Endpoint {
            name,
            address,
            event_types,
            timeout,
        } = endpoint;
        write!(
            toml,
            "\n[[endpoints]]\nname = {name:?}\nurl = \"http://{address}/hooks\"\n\
             max_in_flight = {MAX_IN_FLIGHT}\n"
        )?;
        if let Some(timeout) = timeout {
            writeln!(toml, "timeout = \"{}s\"", timeout.as_secs())?;
        }
        write!(
            toml,
            "\n[[routes]]\nsource = {source:?}\nevent_types = [{event_types:?}]\nendpoint = {name:?}\n"
        )?;
    }
    Ok(toml)
}

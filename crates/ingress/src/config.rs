use bytesize::ByteSize;
use posthaste_jobs::Span;
use serde::{Deserialize, Serialize};

/// Section `[http]`: where to listen, and the limits of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address and port; port 0 takes a free one.
    pub listen: String,
    /// Largest body, unless a source sets its own. A larger one is answered 413.
    pub max_body: ByteSize,
    /// Bytes of bodies held over all requests at once. What does not fit is answered 503; a body that
    /// could never fit is answered 413.
    pub max_body_in_flight: ByteSize,
    /// Bytes of all headers of a request together, names and values. More are answered 431.
    pub max_headers: ByteSize,
    /// How long a client may take to send the headers, to send the body, to read an answer, and to
    /// stay silent on an open connection; each on its own.
    pub read_timeout: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            max_body: ByteSize::mib(25),
            max_body_in_flight: ByteSize::mib(256),
            max_headers: ByteSize::kib(32),
            read_timeout: Span::from_secs(30),
        }
    }
}

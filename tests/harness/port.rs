//! Ports that stay ours while a test needs them.

use std::fs::{File, TryLockError};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below what the kernel hands out for outgoing connections, so that a port whose server was killed is
/// not taken by a client before the server is back.
const RANGE: std::ops::Range<u16> = 12_000..32_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port on 127.0.0.1 that no other test uses until this is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Takes a free one.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn free() -> Self {
        let size = RANGE.end - RANGE.start;
        let start = u16::try_from(std::process::id() % u32::from(size)).unwrap_or(0);
        let folder = std::env::temp_dir().join("posthaste-test-ports");
        std::fs::create_dir_all(&folder).expect("a folder for port locks can be made");
        for _ in 0..size {
            // 37 and the size have no common factor: every port has its turn, neighbours are spread.
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let offset = (u32::from(start) + 37 * u32::from(step)) % u32::from(size);
            let number = RANGE.start + u16::try_from(offset).expect("less than the size");
            let lock = File::create(folder.join(number.to_string())).expect("a port lock can be made");
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => panic!("a port lock failed: {error}"),
            }
            if TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Self { number, _lock: lock };
            }
        }
        panic!("no port is free in {RANGE:?}");
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// Where a server on it is reached.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.number).into()
    }
}

//! Writes log lines from a thread of its own, so that no task waits for a slow terminal or a full pipe.
//!
//! It promises no line: when more are waiting than it keeps, the rest are counted and dropped.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait.
const WAITING: usize = 8192;
/// How long the end of the process waits for the last lines.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often it then looks whether there is room.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(1);

/// Takes lines. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LogWriter {
    lines: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

enum Message {
    Line(Vec<u8>),
    End,
}

/// Writes what is waiting, when it goes.
#[must_use = "lines are lost when it goes too soon"]
pub(crate) struct Guard {
    lines: SyncSender<Message>,
    ended: Receiver<()>,
}

impl LogWriter {
    /// Starts the thread that writes to `out`.
    pub(crate) fn start(out: impl Write + Send + 'static) -> (Self, Guard) {
        let (lines, waiting) = sync_channel(WAITING);
        let (end, ended) = sync_channel(1);
        let dropped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&dropped);
        std::thread::spawn(move || {
            write(&waiting, out, &count);
            // Nobody listens when the guard did not wait for us.
            let _ = end.send(());
        });
        (
            Self {
                lines: lines.clone(),
                dropped,
            },
            Guard { lines, ended },
        )
    }
}

/// Writes until the end, gathering what is waiting into one write.
fn write(waiting: &Receiver<Message>, mut out: impl Write, dropped: &AtomicU64) {
    let mut block = Vec::new();
    while let Ok(Message::Line(line)) = waiting.recv() {
        block.clear();
        block.extend_from_slice(&line);
        let mut over = false;
        while block.len() < 64 * 1024 {
            match waiting.try_recv() {
                Ok(Message::Line(line)) => block.extend_from_slice(&line),
                Ok(Message::End) => {
                    over = true;
                    break;
                }
                Err(_) => break,
            }
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            block.extend_from_slice(format!("({lost} log lines were lost: stderr is too slow)\n").as_bytes());
        }
        // There is nowhere left to tell that stderr is gone.
        let _ = out.write_all(&block);
        let _ = out.flush();
        if over {
            break;
        }
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(Message::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // While too many lines are waiting there is no room for the end either; it comes as they are written.
        let mut left = FAREWELL;
        while let Err(TrySendError::Full(_)) = self.lines.try_send(Message::End) {
            if left.is_zero() {
                return;
            }
            std::thread::sleep(LOOK_FOR_ROOM);
            left = left.saturating_sub(LOOK_FOR_ROOM);
        }
        // An error is a stderr that takes nothing any more; the process ends all the same.
        let _ = self.ended.recv_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A stderr that takes nothing until it is let go.
    struct Stuck(Receiver<()>, Shared);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // An error means that it was let go for good.
            let _ = self.0.recv();
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_is_written_before_the_guard_is_gone() {
        let out = Shared::default();
        let (mut writer, guard) = LogWriter::start(out.clone());

        for number in 0..1000 {
            writeln!(writer, "{number}").unwrap();
        }
        drop(guard);

        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        assert!(text.ends_with("999\n"));
        assert!(!text.contains("lost"));
    }

    #[test]
    fn a_guard_that_goes_while_the_most_lines_wait_still_waits_for_the_last() {
        let out = Shared::default();
        let (let_go, stuck) = sync_channel(0);
        let (mut writer, guard) = LogWriter::start(Stuck(stuck, out.clone()));
        while writer.dropped.load(Ordering::Relaxed) == 0 {
            writer.write_all(b"line\n").unwrap();
        }

        let going = std::thread::spawn(move || drop(guard));
        drop(let_go);
        going.join().unwrap();

        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        assert!(text.lines().filter(|line| *line == "line").count() >= WAITING);
    }

    #[test]
    fn a_stuck_stderr_blocks_nobody_and_the_lost_lines_are_counted() {
        let out = Shared::default();
        let (let_go, stuck) = sync_channel(0);
        let (mut writer, guard) = LogWriter::start(Stuck(stuck, out.clone()));

        for _ in 0..WAITING * 4 {
            writer.write_all(b"line\n").unwrap();
        }
        drop(let_go);
        while writer.lines.try_send(Message::Line(Vec::new())).is_err() {
            std::thread::yield_now();
        }
        drop(guard);

        assert!(
            String::from_utf8(out.0.lock().unwrap().clone())
                .unwrap()
                .contains("log lines were lost")
        );
    }
}

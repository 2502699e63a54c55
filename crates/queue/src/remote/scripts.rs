use std::sync::LazyLock;

use redis::{Arg, Cmd, ToRedisArgs};

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(concat!(
                include_str!("../../lua/clock.lua"),
                include_str!(concat!("../../lua/", $file))
            ))
        });
    };
}

script!(PUSH, "push.lua");
script!(FETCH, "fetch.lua");
script!(ACKNOWLEDGE, "acknowledge.lua");
script!(PROMOTE, "promote.lua");
script!(RECOVER, "recover.lua");
script!(RENEW, "renew.lua");
script!(SURVEY, "survey.lua");
script!(PAUSE, "pause.lua");
script!(EPOCH, "epoch.lua");
script!(INSPECT, "inspect.lua");
script!(PROBE, "probe.lua");

/// A script that servers keep, and are told again when they have forgotten it.
pub(crate) struct Script {
    code: &'static str,
    hash: String,
}

impl Script {
    fn new(code: &'static str) -> Self {
        let hash = redis::Script::new(code).get_hash().to_owned();
        Self { code, hash }
    }

    /// Begins a call that touches `keys`, which are all in one slot.
    pub(crate) fn on<'a>(&'static self, keys: impl IntoIterator<Item = &'a String>) -> Call {
        let keys: Vec<&String> = keys.into_iter().collect();
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hash).arg(keys.len()).arg(keys);
        Call {
            script: self,
            command,
        }
    }
}

/// A script with all that it is to work on.
///
/// Not redis-rs's `ScriptInvocation`, for where the script is not known that loads it into all nodes of a cluster, and
/// fails for any of them that is down.
pub(crate) struct Call {
    script: &'static Script,
    command: Cmd,
}

impl Call {
    pub(crate) fn arg(&mut self, argument: impl ToRedisArgs) -> &mut Self {
        self.command.arg(argument);
        self
    }

    /// The call by the script's name, for a server that knows it.
    pub(crate) fn by_name(&self) -> &Cmd {
        &self.command
    }

    /// The same call with the script's text. It goes where the call by name goes, and the server there knows it then.
    pub(crate) fn by_text(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.script.code);
        for argument in self.command.args_iter().skip(2) {
            if let Arg::Simple(argument) = argument {
                command.arg(argument);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_by_text_says_the_same_as_one_by_name() {
        let keys = ["{q}:a".to_owned(), "{q}:b".to_owned()];
        let mut call = EPOCH.on(&keys);
        call.arg("x").arg(7).arg(&["y", ""][..]);

        let arguments = |command: &Cmd| -> Vec<Vec<u8>> {
            command
                .args_iter()
                .filter_map(|argument| match argument {
                    Arg::Simple(argument) => Some(argument.to_vec()),
                    _ => None,
                })
                .collect()
        };
        let (by_name, by_text) = (arguments(call.by_name()), arguments(&call.by_text()));

        assert_eq!(
            by_name[..2],
            [b"EVALSHA".to_vec(), EPOCH.hash.clone().into_bytes()]
        );
        assert_eq!(by_text[..2], [b"EVAL".to_vec(), EPOCH.code.as_bytes().to_vec()]);
        assert_eq!(by_name[2..], by_text[2..]);
        assert_eq!(
            by_text[2..],
            ["2", "{q}:a", "{q}:b", "x", "7", "y", ""].map(|text| text.as_bytes().to_vec())
        );
    }
}

use std::sync::LazyLock;

use redis::Script;

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

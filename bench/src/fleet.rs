use std::fmt;

use crate::args::Setup;

/// What a process of Posthaste does; also the name of its subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Up,
    Ingress,
    Workers,
}

/// One of Posthaste's processes.
///
/// The first of a role is shown by the role's name, those after it with their number: `workers`,
/// `workers-2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) role: Role,
    /// From 1, within the role.
    pub(crate) number: u16,
}

/// How many processes there are of each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) up: u16,
    pub(crate) ingress: u16,
    pub(crate) workers: u16,
}

impl Role {
    /// Returns its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Ingress => "ingress",
            Self::Workers => "workers",
        }
    }

    /// Whether its processes take events in.
    pub(crate) fn listens(self) -> bool {
        self != Self::Workers
    }

    /// Whether its processes run jobs.
    pub(crate) fn works(self) -> bool {
        self != Self::Ingress
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.role.name())?;
        match self.number {
            1 => Ok(()),
            number => write!(f, "-{number}"),
        }
    }
}

impl Fleet {
    /// Returns a fleet of `ingress` and `workers` where the set-up has them, else of one `up`.
    pub(crate) fn new(setup: Setup, ingress: u16, workers: u16) -> Self {
        match setup {
            Setup::Own => Self {
                up: 1,
                ingress: 0,
                workers: 0,
            },
            Setup::Scaled => Self {
                up: 0,
                ingress,
                workers,
            },
        }
    }

    /// Returns all members, those that take events in first.
    pub(crate) fn members(self) -> impl Iterator<Item = Member> {
        [
            (Role::Up, self.up),
            (Role::Ingress, self.ingress),
            (Role::Workers, self.workers),
        ]
        .into_iter()
        .flat_map(|(role, count)| (1..=count).map(move |number| Member { role, number }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(fleet: Fleet) -> Vec<String> {
        fleet.members().map(|member| member.to_string()).collect()
    }

    #[test]
    fn members_are_named_by_role_and_from_the_second_on_by_number() {
        assert_eq!(names(Fleet::new(Setup::Own, 2, 2)), ["up"]);
        assert_eq!(
            names(Fleet::new(Setup::Scaled, 1, 3)),
            ["ingress", "workers", "workers-2", "workers-3"]
        );
    }

    #[test]
    fn only_up_and_workers_run_jobs() {
        let working = |setup| {
            let members = Fleet::new(setup, 1, 1).members();
            members
                .map(|member| member.role)
                .filter(|role| role.works())
                .collect::<Vec<_>>()
        };

        assert_eq!(working(Setup::Own), [Role::Up]);
        assert_eq!(working(Setup::Scaled), [Role::Workers]);
    }
}

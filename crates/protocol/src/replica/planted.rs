//! Known-wrong variants, for the simulator and the model checker: each must be caught. They are
//! compiled in only with the feature `planted-bugs`, and even then run only when a configuration
//! names one.

/// Declares the bugs with their names and what is wrong in each.
macro_rules! planted_bugs {
    ($($bug:ident = $name:literal: $what:literal;)*) => {
        /// A known-wrong variant of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(
            not(feature = "planted-bugs"),
            allow(dead_code, unreachable_pub, reason = "public, and wholly used, only with the feature")
        )]
        pub enum PlantedBug {
            $(#[doc = $what] $bug,)*
        }

        #[cfg(feature = "planted-bugs")]
        impl PlantedBug {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$bug,)*];

            /// Its name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$bug => $name,)* }
            }

            /// What is wrong in it.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self { $(Self::$bug => $what,)* }
            }
        }
    };
}

planted_bugs! {
    NoConflictCheck = "no-conflict-check": "The accept rule ignores timestamps.";
    RecoverEverything = "recover-everything": "Majority mode recovers overwritten updates too, after newer ones.";
    RecoverInArrivalOrder = "recover-in-arrival-order": "Recovered updates are ordered as one log has them, not by timestamp.";
    RecoveryThresholdTooHigh = "recovery-threshold-too-high": "Supermajority mode wants one log more than the quorum promises.";
    RecoverNothing = "recover-nothing": "The new leader forgets the durability logs.";
    AmnesiacRejoinsAtOnce = "amnesiac-rejoins-at-once": "A replica that lost its memory goes on in the view it was in.";
    OkBeforePersist = "ok-before-persist": "Ok leaves before the update is on disk.";
    PrepareOkBeforePersist = "prepare-ok-before-persist": "PrepareOk leaves before the entries are on disk.";
    ViewChangeBeforePersist = "view-change-before-persist": "DoViewChange leaves before the view is on disk, and the view is not written.";
    EarlierPromiseForgotten = "earlier-promise-forgotten": "A replica that starts with a shorter lease does not wait out the longer one that it promised before.";
    ReadWithoutLease = "read-without-lease": "The leader answers reads without a lease or a round of heartbeats.";
    PromiseForgotten = "promise-forgotten": "A follower joins a view change before the lease it granted has ended.";
    ReadSkipsPending = "read-skips-pending": "A read does not wait for pending updates of its keys.";
    NoDeduplication = "no-deduplication": "Completion records are not looked at.";
    RestartedLeaderResumes = "restarted-leader-resumes": "A leader that restarts goes on leading its view.";
    CommitTooEarly = "commit-too-early": "An entry commits when one replica fewer than a majority has it.";
    DlogNotCleared = "dlog-not-cleared": "Entering a view leaves the durability log as it was.";
    DlogDropsOrdered = "dlog-drops-ordered": "The leader's durability log drops updates when they are ordered, not when they are finalized.";
    OkForOrdered = "ok-for-ordered": "The leader answers Ok for an update that is ordered after a conflict and not yet committed.";
    FastQuorumWithoutLeader = "fast-quorum-without-leader": "A client completes an update without the leader's Ok.";
    AnyViewAccepted = "any-view-accepted": "A replica accepts requests sent for another view.";
    StaleLogChosen = "stale-log-chosen": "The new leader takes the longest log whatever view it was last normal in.";
    SnapshotWithoutSessions = "snapshot-without-sessions": "A snapshot that is installed brings no session table.";
    LogDroppedBeforeSnapshot = "log-dropped-before-snapshot": "The write-ahead log before a snapshot goes when the snapshot begins, not when it is on disk.";
    SnapshotCutShort = "snapshot-cut-short": "A snapshot that cannot be received ends the one that is being taken, whose file ends there.";
    SentBeforeRecord = "sent-before-record": "What carries out the core's actions sends a message before its record is on disk.";
    ViewNotNoted = "view-not-noted": "The file of the view does not say what the log says: a replica whose log is damaged starts in an older view.";
    ViewNotRenewed = "view-not-renewed": "A log that is opened again is not told the view: what was lost with the records that were not durable counts as durable.";
    LogToldBeforeDisk = "log-told-before-disk": "A member says that its log is durable up to an entry that is not on its disk yet.";
    DirectToStranger = "direct-to-stranger": "A follower answers whoever asks for the answers of a session.";
    LogOfAnyView = "log-of-any-view": "A follower counts what members said of their logs in another view.";
    NobodyWoken = "nobody-woken": "The log's thread wakes nobody for a record that only the core waits for.";
    RemovedBeforeRecord = "removed-before-record": "Snapshots and records go before the record that replaces them is on disk.";
    SuffixDroppedForSnapshot = "suffix-dropped-for-snapshot": "Installing a snapshot drops the entries after it that this replica vouched for.";
    AmnesiaForgotten = "amnesia-forgotten": "A replica that lost its memory and received a snapshot lets its log begin with that.";
    MetaSkipsPending = "meta-skips-pending": "The leader says which entry changed a key last without a look at what is pending.";
    HistoryTooLow = "history-too-low": "What has been trimmed from the leader's history counts as never changed.";
    FreshnessByLeader = "freshness-by-leader": "The leader says that a follower is new enough by what that has executed when the leader looks.";
    QuorumSkipsDlog = "quorum-skips-dlog": "A member of a read quorum keeps silent about its durability log.";
    AcceptedForgotten = "accepted-forgotten": "Entering a view, members take what is in the log for executed, as a read quorum sees it.";
    QuorumOfOneLess = "quorum-of-one-less": "A read quorum is one replica short of a majority.";
    RinseOfOtherView = "rinse-of-other-view": "A client takes a value that it asked for after an entry of one view from a member of a later one.";
    SharedKeysIgnored = "shared-keys-ignored": "The leader accepts an update after one that is pending on its key and on others.";
    SharedKeysAtLeaderOnly = "shared-keys-at-leader-only": "Followers accept an update after one that is pending on its key and on others.";
    FollowersAhead = "followers-ahead": "Followers may execute what their leader has not, and new leaders answer before they have caught up.";
    ExpiryOverlooked = "expiry-overlooked": "A key that may have expired elsewhere is served all the same.";
    NobodyMeets = "nobody-meets": "Operations on keys of several lanes are executed by one of them, without a meeting.";
    CheckpointBeforeRecord = "checkpoint-before-record": "A checkpoint of the engine is flushed before the record that goes with it is on disk.";
    CheckpointInPassing = "checkpoint-in-passing": "A checkpoint of the engine is sealed while lanes go on.";
    CheckpointByLogAlone = "checkpoint-by-log-alone": "A checkpoint of the engine is due when the log is long enough, however much is in memory.";
    CheckpointWithoutSessions = "checkpoint-without-sessions": "A checkpoint of the engine holds no session table.";
    ReadOfSeveralInPassing = "read-of-several-in-passing": "A read of several keys does not wait until their lanes have met.";
    OverlapIgnored = "overlap-ignored": "Followers accept an update that returns state though something pending overlaps it.";
    NoOpAnsweredByAny = "no-op-answered-by-any": "Any member answers an update that changes nothing of its state, whether it leads or not.";
    EvaluatedBeforeExecuted = "evaluated-before-executed": "The leader says what an update returns while entries of its keys are still to be executed.";
    EvaluatedAgain = "evaluated-again": "A leader that is asked again evaluates again what it has in its durability log.";
    ToldBeforePersist = "told-before-persist": "A replica answers clients out of a view before its entering it is on disk.";
    EvaluatedInPassing = "evaluated-in-passing": "What an update returns is found out while lanes go on.";
    EvaluationOfOtherViewKept = "evaluation-of-other-view-kept": "A client keeps what a leader said an update returns when the next view begins.";
    EvaluationIsEnough = "evaluation-is-enough": "A client completes an update that returns state with a majority.";
    AcksOfOtherViewsCounted = "acks-of-other-views-counted": "A client counts acknowledgements given in different views.";
    ExpiringSessionAccepted = "expiring-session-accepted": "The leader accepts updates of a session whose end is in the log and not yet executed.";
    PromiseByOwnLease = "promise-by-own-lease": "A leader counts followers' promises by its own lease duration.";
    LogTimeByOneClock = "log-time-by-one-clock": "Log time follows the leader's own clock, whatever the others' are.";
    DeposedLeaderStays = "deposed-leader-stays": "A leader that hears of later views keeps leading its own.";
    DeadSourceAskedOn = "dead-source-asked-on": "A replica whose source of a transfer died goes on asking it, whatever views come.";
    UnheardLeaderStays = "unheard-leader-stays": "A leader that hears no followers goes on sending heartbeats.";
    RefusedForGood = "refused-for-good": "A leader without room refuses an update that others have, for good.";
    RefusalByRecipients = "refusal-by-recipients": "A leader without room refuses for good an update that was sent to no other replica, though it may be sent again.";
    FailuresMeasured = "failures-measured": "A client takes the time that an update failed in for time that updates take.";
    AbsentAwaited = "absent-awaited": "A client waits for a fast quorum of replicas that it is not connected to.";
    BackoffOutlastsSession = "backoff-outlasts-session": "A client that is refused for want of room waits longer than its session lasts.";
    RefusedReadAwaited = "refused-read-awaited": "A client waits for the answer to a read that was refused as long as for one that is on its way.";
    BehindForGood = "behind-for-good": "A client takes a replica that was in an earlier view when last heard of for one that will not answer.";
    AttachmentKept = "attachment-kept": "A client takes its session for shown to a replica that has entered the view since.";
    AcknowledgedInLogRecovered = "acknowledged-in-log-recovered": "Recovery takes updates that entries of the log acknowledge.";
    OldLogTrusted = "old-log-trusted": "A replica takes a log for its own that is an old copy of it.";
    WindowOfExecuted = "window-of-executed": "The window of a session moves on only with what is executed.";
    OwnPatience = "own-patience": "A replica leaves a view that has not begun after its own time-out, however long others wait for it.";
    FruitlessLeaderStays = "fruitless-leader-stays": "A leader that is answered now and then stays, however long nothing is committed.";
    RestartsUnheard = "restarts-unheard": "A leader that f followers do not answer leads again for one that has lost its memory.";
    UnansweredViewBegan = "unanswered-view-began": "A leader whom f followers have never answered takes its view for one that has begun.";
    PatienceByAverages = "patience-by-averages": "A client waits for a silent leader by the longest average of anything it has done.";
    ClockOfAnybody = "clock-of-anybody": "A client's timestamps follow whichever replica's clock is ahead, in one session.";
    PeersNotValidated = "peers-not-validated": "What other members say is taken for possible.";
    ResentAcknowledgesMore = "resent-acknowledges-more": "A client that sends an update again in the same view acknowledges what it has completed since.";
    ReferenceById = "reference-by-id": "A follower takes the body that it holds under an id for the one that its leader means.";
    UnattachedAccepted = "unattached-accepted": "A replica takes updates of a session from whoever names it.";
    ChecksumIgnored = "checksum-ignored": "A process takes frames whose checksum is wrong.";
    RefusalIsForGood = "refusal-is-for-good": "A leader does not order what it has refused for want of room when a follower hands it over later.";
    LeaderRefusalIsEnough = "leader-refusal-is-enough": "A client reports an update that was sent to all as refused when the leader has refused it.";
    RefusalOutlivesProcess = "refusal-outlives-process": "A client reports an update as refused by all that were asked though it has sent it again since.";
    StrongByUnion = "strong-by-union": "Mixed mode recovers updates that need all active members from a single durability log.";
    StrongWithOneLess = "strong-with-one-less": "A client completes an update that needs all active members with the answers of all but one.";
    PassiveAccepts = "passive-accepts": "A member that is not active accepts updates, and clients count it.";
    PassiveRecovered = "passive-recovered": "The durability logs of members that were not active count in recovery.";
    ActiveOfOtherView = "active-of-other-view": "A client counts by the active members of an earlier view.";
    SlowStaysActive = "slow-stays-active": "A leader of a mixed view never leaves out a member that answers late.";
    ModeOfConfiguration = "mode-of-configuration": "Durability logs are recovered by the mode that the group was made with, and not by that of their view.";
    RuleForgotten = "rule-forgotten": "A replica that starts again takes all members for active in the view that it was in.";
    RuleOfOwnView = "rule-of-own-view": "A new leader recovers by the active members of the view that it was last normal in itself, which may be an earlier one.";
    ActiveWithinView = "active-within-view": "A leader leaves members out, and takes them back, without another view.";
    AcceptedLeftBehind = "accepted-left-behind": "A leader orders an update that it does not accept before those that it has accepted.";
    AbsentStaysActive = "absent-stays-active": "A leader of a mixed view never leaves out a member that it does not hear.";
    SilentForGood = "silent-for-good": "A leader whose disk has failed sends no sign of life when its log is open again.";
    FetchingUnheard = "fetching-unheard": "A leader gives up its view while a follower that it needs is fetching what it lacks to enter it.";
    RefusedUnheard = "refused-unheard": "A replica whose session table is full forgets what a request acknowledges that it refuses.";
    CrowdedOutForGood = "crowded-out-for-good": "A leader refuses an update for good of which it refused the first copy when it had no room.";
    DuplicateById = "duplicate-by-id": "A replica takes a request for a copy of another one that has the same id and another body.";
    WipedDiskJoins = "wiped-disk-joins": "A new data directory joins a group that knows its member by another disk.";
    StaleWithoutMemory = "stale-without-memory": "A replica that lost its memory answers stale reads.";
    StaleOfSeveralInPassing = "stale-of-several-in-passing": "A stale read of several keys does not wait until their lanes have met.";
    UpdateLost = "update-lost": "The last member has nothing in its log where every seventh entry of the others has an update.";
    PartOfSegmentReported = "part-of-segment-reported": "A replica that begins inside a segment of the log reports a digest of it.";
    CopyUncommitted = "copy-uncommitted": "A client that copies the log for a backup gets entries that are not committed.";
    CopySkipsDropped = "copy-skips-dropped": "A client that copies the log, and asks for entries that are gone, gets those that are left as if they followed.";
    DroppedUncommitted = "dropped-uncommitted": "A member or a learner gets as committed all that is on disk behind what is gone from memory.";
    CopyOverwritten = "copy-overwritten": "A client that copies the log gets an entry of the log on disk that a later view has replaced there.";
    KeptWithoutRoom = "kept-without-room": "A log whose disk is nearly full drops what it keeps, and keeps what it then needs no more.";
    EvictedInPassing = "evicted-in-passing": "A member that has too little memory removes keys by itself, and not by the log.";
    EvictedBeside = "evicted-beside": "What removes keys for want of memory removes one more, of which nobody is told.";
    EngineLosesUpdate = "engine-loses-update": "The engine of the last member does not execute every seventh entry, if nobody awaits its reply.";
    EngineLosesField = "engine-loses-field": "The engine of the last member sets only the first field of an HSET in every seventh entry, if nobody awaits its reply.";
    EvaluatedByFirstField = "evaluated-by-first-field": "What an HSET of several fields returns is found out by the first of them.";
    EvaluatedInPlace = "evaluated-in-place": "What an update of a hash returns is found out on the hash of the engine, as if a clone saw what is done to it.";
    EvaluatedAtOtherEnd = "evaluated-at-other-end": "What LPOP and RPOP return is found out at the other end of the list.";
    EvaluatedAtHighestScore = "evaluated-at-highest-score": "What ZPOPMIN returns is found out by ZPOPMAX.";
    EvaluatedByFirstMember = "evaluated-by-first-member": "What a SADD of several members returns is found out by the first of them.";
    ConditionIgnored = "condition-ignored": "A transaction is executed though keys that it watches have changed.";
    AbsenceEvaluated = "absence-evaluated": "A condition about a key that does not exist is decided before it is executed, though updates of other keys change the version of such a key.";
    EvaluatedBeforeExpiry = "evaluated-before-expiry": "What an update returns is found out as if no key expired before the update is executed.";
    AllKeysAsOne = "all-keys-as-one": "The accept rule takes an update of all keys for one of a key that nothing else concerns.";
    AllKeysReadSkipsPending = "all-keys-read-skips-pending": "A read of all keys does not wait for pending updates.";
    HandshakeTellsEnough = "handshake-tells-enough": "A member that votes while it shakes hands with another one does not tell that one.";
    DroppedReplyIsEmpty = "dropped-reply-is-empty": "An update whose reply was not kept is answered with an empty reply.";
    DroppedReplyRunsAgain = "dropped-reply-runs-again": "An update whose reply was not kept counts as never executed.";
    RepliesKeptByOne = "replies-kept-by-one": "The first member keeps every reply.";
    RegistrationAbandoned = "registration-abandoned": "A client whose registration was refused for now begins another one.";
    AmnesiacGivesState = "amnesiac-gives-state": "A replica that has lost its memory gives others what it has fetched so far, as if it were of its old view.";
    AmnesiacGoesBack = "amnesiac-goes-back": "A replica that has lost its memory and fetched entries of a view enters an earlier one.";
    MixedEpochAnswers = "mixed-epoch-answers": "A client counts answers of different configurations together.";
    RepliesOutOfOrder = "replies-out-of-order": "A reply to a Redis client does not wait for the replies to earlier commands.";
    LockReleasedEarly = "lock-released-early": "A Redis connection submits a command when an earlier update of its keys has been submitted, not when it has ended.";
    DatabaseForgotten = "database-forgotten": "A command of a Redis client joins one that waits on a key of the same name in another database, and is executed there.";
    CompletionToPlace = "completion-to-place": "The end of an operation goes to the connection that has the place of the one that asked for it, which may be gone.";
    MessageTwice = "message-twice": "A front end hands a published message on to subscribers that it has had before.";
    SubscriptionsForgotten = "subscriptions-forgotten": "A front end that has lost a connection to another one does not tell it anew what its clients subscribe to.";
    AnnouncedAgain = "announced-again": "A gateway tells its clients of what another node has told it before.";
    KeyEventsForgotten = "key-events-forgotten": "Of several entries that a node executes in a row, it tells only of the last one what it has done to keys.";
    InvalidationLate = "invalidation-late": "A client that keeps copies gets the reply of another replica, with a new value, before it is told to drop its copy.";
    InvalidationForgotten = "invalidation-forgotten": "A client that keeps copies is not told that a key has changed while it read the key.";
    CopiesOutliveState = "copies-outlive-state": "Clients that keep copies are not told that the replica of their node has taken over another state.";
    ScriptNotUndone = "script-not-undone": "What a script has done stays though it touches a key that it did not declare, and is answered with an error.";
    ScriptConcernsDeclared = "script-concerns-declared": "A script that may touch any key is taken for one that touches those which it declares.";
    UnknownTriedAgain = "unknown-tried-again": "A script is submitted once more, as if memory had been short for it, when nobody knows whether it was executed.";
    SecondKeyForgotten = "second-key-forgotten": "The key at which LMOVE or SMOVE leaves what it takes is no part of its footprint.";
    WaiterNotWoken = "waiter-not-woken": "A front end does not look whether it is the turn of a command that waits.";
    TakenForNothing = "taken-for-nothing": "A command that waits is submitted again when nobody knows whether it has taken an element.";
    PlaceNotKept = "place-not-kept": "A command that waits goes to the end of the queue each time it is submitted again.";
    LeftOnce = "left-once": "A command of which nobody knows what has become is taken out of the queue once, and may come to stand there later.";
    DepartureForgotten = "departure-forgotten": "A command that has waited long enough is not taken out of the queue.";
    GoneClientWaits = "gone-client-waits": "A command that waits is begun for a client that has closed its connection.";
    SourceAskedAlone = "source-asked-alone": "A new leader asks nobody but the member whose log it goes by for what is committed, though that one does not answer.";
    FetchingCounted = "fetching-counted": "A leader that changes the members counts those that have yet to copy what the group holds.";
    ShrunkByThoseThatGo = "shrunk-by-those-that-go": "A majority with those that go commits that the group shrinks, though most of those that stay have not heard of it.";
    FirstRuleOfNow = "first-rule-of-now": "A replica that is started again, and has never changed its view, takes the active members of that view for those of the configuration that it is in now.";
    NewMembersNeverBegin = "new-members-never-begin": "A node that the group has grown by begins no first view of a configuration, though it may be the only one that all others hear.";
    GrowthNotDeclared = "growth-not-declared": "A node that the group has grown by is not told that, once a view with it has committed something.";
    LearnerCounted = "learner-counted": "A node that is no member yet asks for its place before it has copied what the group holds, and the leader takes it.";
    LearnerTakesAll = "learner-takes-all": "A node that is no member yet takes what it copies from a log for committed.";
    LearnerActsEarly = "learner-acts-early": "A node that is no member yet acts in a configuration that it has found in a log, committed or not.";
    AnyNewcomerTaken = "any-newcomer-taken": "A leader takes a node that asks for a place which there is not for the one that asks for the second of the next two.";
    PipelineForgotten = "pipeline-forgotten": "A connection is not read on whose command was answered while its bytes were taken.";
    UnknownIsDone = "unknown-is-done": "A Redis client is told OK for an update of which nobody knows whether it was executed.";
    NewcomerActs = "newcomer-acts": "A node that takes the place of another one takes part at once, with nothing in its log.";
    NewcomerForgets = "newcomer-forgets": "A new node that is stopped before it has written anything is taken for a member with an empty log.";
    ReplacedGoesAlong = "replaced-goes-along": "A node that has been replaced acts in the configuration that it is not in, and members take its messages.";
    OldQuorumSkipped = "old-quorum-skipped": "The first view of a group that has another size needs a majority of its members, whoever they are.";
    FaultsOfOtherSize = "faults-of-other-size": "Durability logs of a view are recovered by the size that the group has now, and not by that which it had.";
    EstablishedEarly = "established-early": "Members that a group shrinks by are let go before a view without them has committed anything.";
    SizeOfBefore = "size-of-before": "A client counts answers by the size that the group had when the client began.";
    FormationByQuorum = "formation-by-quorum": "A group is formed when a quorum of new directories have heard of each other.";
    UserChangeToldEarly = "user-change-told-early": "A front end passes on the reply to a change of users before it knows the change itself.";
    UsersElsewhereForgotten = "users-elsewhere-forgotten": "Who takes a right away gets the reply while other front ends may still go by the right.";
    UsersForEver = "users-for-ever": "A front end that has heard nothing of the users for long goes by what it knew of them.";
    UsersOfNewCluster = "users-of-new-cluster": "A front end that starts takes the users for those of a new cluster until it has read them.";
    ProvisionalLoginKept = "provisional-login-kept": "Clients become users, and stay that, while nobody can tell whether the users have changed.";
    ScriptOfNobody = "script-of-nobody": "What a script calls is not checked.";
    ExecNotChecked = "exec-not-checked": "EXEC executes what was allowed when it was queued.";
    RemovedUserGoesOn = "removed-user-goes-on": "The connection of a user that has been removed goes on as that user.";
}

"""Every check of an installation, in the order in which a person would mend it."""

from service.doctor import (
    activation,
    clock,
    database,
    deliveries,
    flags,
    forum,
    index,
    model_servers,
    proofs,
    queue,
    sign_in,
)
from service.doctor.check import Examination

_DATABASE = "Start Postgres and check database.url, its password and that this machine may connect."
_INDEX = "Mend the database and its schema first."
_FORUM = "Check forum.base_url, and that this machine reaches the forum: its proxy or firewall may refuse us."
_MODEL = "Start the model server, check its url and key under models, and that it serves the model of the profile."

CHECKS = (
    Examination("database", database.database, _DATABASE),
    Examination("schema", database.schema, "Run `ariane migrate`."),
    Examination("disk", database.disk, "Set ARIANE_HOME to a folder that exists."),
    Examination("worker", queue.worker, _INDEX),
    Examination("queue", queue.queue, _INDEX),
    Examination("failed jobs", queue.failed_jobs, _INDEX),
    Examination("forum", forum.forum, _FORUM),
    Examination("key", forum.key, forum.KEY_MEND),
    Examination("account", forum.account, forum.KEY_MEND),
    Examination("webhook secret", deliveries.secret, _INDEX),
    Examination("deliveries", deliveries.deliveries, _FORUM),
    Examination("clocks", clock.clock, clock.MEND),
    Examination("embedder", model_servers.embedder, _MODEL),
    Examination("reranker", model_servers.reranker, _MODEL),
    Examination("answerer", model_servers.answerer, _MODEL),
    Examination("index", index.index, _INDEX),
    Examination("profile", index.profile, _INDEX),
    Examination("quarantine", index.quarantine, _INDEX),
    Examination("embedder's proof", proofs.embedder_proof, _MODEL),
    Examination("reranker's proof", proofs.reranker_proof, _MODEL),
    Examination("flags", flags.flags, "Set it again: `ariane flags set NAME VALUE --why ...`."),
    Examination("activation", activation.activation, _INDEX),
    Examination("sign-in", sign_in.sign_in, sign_in.CONNECT_MEND),
)

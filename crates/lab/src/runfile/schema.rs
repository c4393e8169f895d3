//! The tables of a run file. docs/RUNFILE.md explains every column; keep the two together.

/// Marks a SQLite file as a run file: `IOLB`.
pub(super) const APPLICATION_ID: i64 = 0x494F_4C42;

/// Creates all tables. Checks guard against mistakes of the writer; a reader trusts none of them.
pub(super) const CREATE: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    status TEXT NOT NULL CHECK (status IN ('running', 'done', 'interrupted', 'failed')),
    tool_version TEXT NOT NULL,
    started_utc TEXT NOT NULL,
    ended_utc TEXT,
    target TEXT NOT NULL,
    target_kind TEXT NOT NULL CHECK (target_kind IN ('scratch', 'file', 'block-device', 'char-device')),
    target_bytes INTEGER NOT NULL CHECK (target_bytes >= 0),
    seed INTEGER NOT NULL CHECK (seed >= 0),
    clock_cost_ns REAL,
    clock_source TEXT NOT NULL,
    floor_ns REAL
);
CREATE TABLE environment (
    position INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    value TEXT NOT NULL
);
CREATE TABLE experiment (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL,
    question TEXT NOT NULL,
    response TEXT NOT NULL CHECK (response IN ('throughput', 'iops', 'latency', 'elapsed')),
    toml TEXT NOT NULL,
    factors TEXT NOT NULL,
    precision REAL NOT NULL CHECK (precision > 0 AND precision < 1),
    budget_ns INTEGER NOT NULL CHECK (budget_ns > 0),
    trials_min INTEGER NOT NULL CHECK (trials_min > 0),
    trials_max INTEGER NOT NULL CHECK (trials_max >= trials_min)
);
CREATE TABLE cell (
    id INTEGER PRIMARY KEY CHECK (id >= 0),
    levels TEXT NOT NULL,
    command TEXT,
    backend TEXT NOT NULL,
    pattern TEXT NOT NULL,
    bs_bytes INTEGER NOT NULL CHECK (bs_bytes > 0),
    skip_bytes INTEGER NOT NULL CHECK (skip_bytes >= 0),
    offset_bytes INTEGER NOT NULL CHECK (offset_bytes >= 0),
    region_bytes INTEGER NOT NULL CHECK (region_bytes > 0),
    threads INTEGER NOT NULL CHECK (threads > 0),
    depth INTEGER NOT NULL CHECK (depth > 0),
    batch TEXT NOT NULL,
    read_percent INTEGER NOT NULL CHECK (read_percent BETWEEN 0 AND 100),
    sync TEXT NOT NULL,
    cache TEXT NOT NULL,
    buffer_init TEXT NOT NULL,
    content TEXT NOT NULL,
    ended_by TEXT CHECK (ended_by IN ('precision', 'budget', 'trials-max'))
);
CREATE TABLE sample (
    id INTEGER PRIMARY KEY,
    cell_id INTEGER NOT NULL REFERENCES cell (id),
    block INTEGER NOT NULL CHECK (block >= 0),
    position INTEGER NOT NULL CHECK (position >= 0),
    warmup INTEGER NOT NULL CHECK (warmup IN (0, 1)),
    ok INTEGER NOT NULL CHECK (ok IN (0, 1)),
    started_utc TEXT NOT NULL,
    read_requests INTEGER NOT NULL CHECK (read_requests >= 0),
    read_bytes INTEGER NOT NULL CHECK (read_bytes >= 0),
    read_short_transfers INTEGER NOT NULL CHECK (read_short_transfers >= 0),
    read_latency_mean_ns REAL,
    read_latency_p50_ns INTEGER,
    read_latency_p90_ns INTEGER,
    read_latency_p99_ns INTEGER,
    read_latency_p999_ns INTEGER,
    read_latency_max_ns INTEGER,
    write_requests INTEGER NOT NULL CHECK (write_requests >= 0),
    write_bytes INTEGER NOT NULL CHECK (write_bytes >= 0),
    write_short_transfers INTEGER NOT NULL CHECK (write_short_transfers >= 0),
    write_latency_mean_ns REAL,
    write_latency_p50_ns INTEGER,
    write_latency_p90_ns INTEGER,
    write_latency_p99_ns INTEGER,
    write_latency_p999_ns INTEGER,
    write_latency_max_ns INTEGER,
    syncs INTEGER NOT NULL CHECK (syncs >= 0),
    errors INTEGER NOT NULL CHECK (errors >= 0),
    failure TEXT,
    ended TEXT NOT NULL CHECK (ended IN ('done', 'time', 'failed')),
    elapsed_ns INTEGER NOT NULL CHECK (elapsed_ns >= 0),
    all_active_ns INTEGER NOT NULL CHECK (all_active_ns >= 0),
    end_sync_ns INTEGER NOT NULL CHECK (end_sync_ns >= 0),
    wall_ns INTEGER NOT NULL CHECK (wall_ns >= 0),
    clock_drift_ppm REAL,
    seed INTEGER NOT NULL CHECK (seed >= 0),
    user_ns INTEGER NOT NULL CHECK (user_ns >= 0),
    system_ns INTEGER NOT NULL CHECK (system_ns >= 0),
    minor_faults INTEGER NOT NULL CHECK (minor_faults >= 0),
    major_faults INTEGER NOT NULL CHECK (major_faults >= 0),
    voluntary_switches INTEGER NOT NULL CHECK (voluntary_switches >= 0),
    involuntary_switches INTEGER NOT NULL CHECK (involuntary_switches >= 0),
    process_rchar_bytes INTEGER,
    process_wchar_bytes INTEGER,
    process_read_calls INTEGER,
    process_write_calls INTEGER,
    process_read_bytes INTEGER,
    process_write_bytes INTEGER,
    device_read_ios INTEGER,
    device_read_merges INTEGER,
    device_read_bytes INTEGER,
    device_write_ios INTEGER,
    device_write_merges INTEGER,
    device_write_bytes INTEGER,
    device_flush_ios INTEGER,
    device_busy_ms INTEGER,
    cycles INTEGER,
    instructions INTEGER,
    llc_misses INTEGER,
    dtlb_misses INTEGER,
    hardware_missing TEXT,
    effective TEXT NOT NULL,
    served_by TEXT NOT NULL
        CHECK (served_by IN ('device', 'page-cache', 'mixed', 'not-storage', 'unknown')),
    device_fraction REAL CHECK (device_fraction BETWEEN 0 AND 1),
    served_by_reason TEXT NOT NULL
);
CREATE UNIQUE INDEX sample_once ON sample (cell_id, block) WHERE ok = 1;
CREATE TABLE latency (
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    direction TEXT NOT NULL CHECK (direction IN ('read', 'write')),
    histogram BLOB NOT NULL,
    PRIMARY KEY (sample_id, direction)
) WITHOUT ROWID;
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    at_utc TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('note', 'warning', 'error', 'choice', 'resume')),
    cell_id INTEGER REFERENCES cell (id),
    message TEXT NOT NULL
);
";

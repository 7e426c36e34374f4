-- Settings that several functions share, written once. A function takes one set by its name: `:index_lookups`.

-- settings: index_lookups
-- Each statement finds its rows by an index, planned once. Rows come and go too fast for statistics to be right, and a plan
-- for every call would take longer than the call. JIT is off because these settings add 1e10 to the cost of some plans
-- before Postgres 18, so that a server with JIT would compile every call.
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off

-- settings: index_walks
-- Like index_lookups, and what joins goes along the indexes step by step: a plan that sorts or joins whole tables would
-- read everything that is scheduled.
set plan_cache_mode = force_generic_plan set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set enable_incremental_sort = off set enable_hashjoin = off set enable_mergejoin = off

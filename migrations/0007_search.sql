-- why: documents that observers keep for searching, found by their words and versioned by the position of their event.
-- locks: none; every object here is new.
-- older: keep

-- One row per index. Documents of new events go to `generation`, and to `building` as well while a reindex fills it.
-- Writers hold the row with FOR KEY SHARE while they write. A change of either generation takes it FOR UPDATE first, so no
-- writer still uses the generation before.
create table :schema.search_indexes (
  name text primary key,
  generation integer not null default 1,
  -- The text search configuration that the words of the generation are made with.
  language text not null,
  building integer,
  building_language text,
  -- The last sign of life of the reindex.
  building_seen_at timestamptz,
  -- A number is given once: a reindex that was given up can never write into the next one.
  last_generation integer not null default 1
) with (fillfactor = 50);
comment on table :schema.search_indexes is 'Search indexes: the generation that is searched, and the one that a reindex builds.';

create table :schema.search_documents (
  index_name text not null,
  generation integer not null,
  -- '' for none.
  tenant text not null,
  id text not null,
  -- Of the event that said so. The higher one wins, whatever arrives last.
  position bigint not null,
  -- A tombstone stays for a while, so that an older event that comes late does not bring the document back.
  deleted boolean not null,
  document jsonb,
  words tsvector,
  written_at timestamptz not null default clock_timestamp(),
  primary key (index_name, generation, tenant, id),
  check (deleted = (document is null))
);
comment on table :schema.search_documents is 'Documents that search actions keep, with their words.';
create index search_documents_words on :schema.search_documents using gin (words);
create index search_documents_tombstones on :schema.search_documents (written_at) where deleted;

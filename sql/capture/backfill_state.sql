-- grants: emit
-- How far the backfill of a captured table has come, its row locked: of two that run at once, one waits for the batch of the other.
create or replace function :schema.backfill_state(p_relation oid, out o_type text, out o_after text[], out o_is_finished boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $aftercommit$
begin
  select b.aggregate_type, b.after_key, b.finished_at is not null into o_type, o_after, o_is_finished
    from :schema.backfills b join :schema.captured_tables t on t.aggregate_type = b.aggregate_type
   where t.relation = p_relation
     for update of b;
end
$aftercommit$;

-- grants: none
-- Refuses TRUNCATE: readers would take the numbers of removed events for rolled back.
create or replace trigger keep_history before truncate on :schema.events for each statement execute function :schema.refuse_truncate();

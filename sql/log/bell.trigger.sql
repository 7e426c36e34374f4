-- grants: none
-- Rings sleeping readers. Enabled always: sessions that apply replicated or bulk data with triggers off ring too.
create or replace trigger bell after insert on :schema.events for each statement execute function :schema.ring();
alter table :schema.events enable always trigger bell;

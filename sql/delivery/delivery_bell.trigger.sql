-- grants: none
-- Wakes sleeping workers when a delivery is added.
create or replace trigger bell after insert on :schema.deliveries for each statement execute function :schema.ring();

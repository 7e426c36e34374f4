-- grants: none
-- Records which server and database the history begins on.
update :schema.log_state set identity = :schema.log_identity() where identity = '';

-- grants: none
-- Makes the partitions for the run records of the coming days. Upkeep goes on from here with the configured retention.
select :schema.keep_run_days(interval '100 years');

/**
 * Captured tables beside a row trigger written by hand, which stores the same columns in a table with the same indexes, and
 * beside a bare insert into the log. One row per transaction from 16 writers, and many rows in one statement.
 */
import { atLeast, later } from '../goals.mjs'
import { connect, medianRatio, perSecond, takeTurns, withLog } from '../measure.mjs'

const writers = 16
const COLUMNS =
  'id bigint primary key, customer text, status text, total numeric(12, 2), note text, placed_at timestamptz'
const ROW = "'ada@example.com', 'new', 90.5, 'by the back door', clock_timestamp()"

export function run({ url, ms, rounds }) {
  const many = 100_000
  return withLog(url, 'bench_capture', async () => {
    const { clients, end } = await connect(url, writers)
    const [client] = clients
    await client.query(tables())
    await client.query("select bench_capture.capture('bench_capture_data.captured', aggregate => 'item')")
    let next = 0
    const insertInto = (table) => (n) =>
      clients[n].query(`insert into bench_capture_data.${table} values ($1, ${ROW})`, [next++])
    const rates = await takeTurns(
      { captured: insertInto('captured'), byHand: insertInto('by_hand') },
      { rounds, ms, writers },
    )
    const bulk = await takeBulkTurns(client, many, rounds)
    await client.query('drop schema bench_capture_data cascade')
    await end()
    return {
      title: `capture: one row from ${writers} writers, and ${many.toLocaleString('en')} rows in one statement`,
      figures: [
        ['row trigger written by hand, one row', perSecond(rates.byHand)],
        ['captured, one row', perSecond(rates.captured)],
        ...Object.entries(bulk).map(([name, times]) => [`${name} (median)`, `${Math.round(medianOf(times))} ms`]),
      ],
      goals: [
        later(atLeast('captured insert / row trigger, one row', rates.captured / rates.byHand, 0.9)),
        atLeast(
          'captured update / row trigger, many rows',
          medianRatio(bulk['update by hand'], bulk['captured update']),
          0.9,
        ),
        atLeast(
          'captured insert / bare insert into the log',
          medianRatio(bulk['bare insert'], bulk['captured insert']),
          0.5,
        ),
      ],
    }
  })
}

async function takeBulkTurns(client, many, rounds) {
  const rows = `select i, ${ROW} from generate_series(1, ${many}) i`
  const statements = {
    'captured insert': `insert into bench_capture_data.captured ${rows}`,
    'bare insert': `insert into bench_capture.events (id, type, aggregate_type, aggregate_id, payload, metadata, occurred_at)
      select gen_random_uuid()::text, 'item.created', 'item', r.id::text, to_jsonb(r), '{"captured_from": "a.b"}', clock_timestamp()
        from (${rows}) r (id, customer, status, total, note, placed_at)`,
    'captured update': "update bench_capture_data.captured set status = 'paid'",
    'update by hand': "update bench_capture_data.by_hand set status = 'paid'",
  }
  const times = Object.fromEntries(Object.keys(statements).map((name) => [name, []]))
  for (let round = -1; round < rounds; round++) {
    await client.query('begin; truncate bench_capture_data.captured, bench_capture_data.by_hand; commit')
    for (const [name, statement] of Object.entries(statements)) {
      if (name === 'update by hand') {
        await client.query('alter table bench_capture_data.by_hand disable trigger by_hand')
        await client.query(`insert into bench_capture_data.by_hand ${rows}`)
        await client.query('alter table bench_capture_data.by_hand enable trigger by_hand')
      }
      const began = performance.now()
      await client.query(statement)
      if (round >= 0) times[name].push(performance.now() - began)
    }
  }
  return times
}

const medianOf = (times) => [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)]

/** The trigger computes the difference as most do: by joining the columns of both rows. */
function tables() {
  return `
    drop schema if exists bench_capture_data cascade;
    create schema bench_capture_data;
    create table bench_capture_data.captured (${COLUMNS});
    create table bench_capture_data.by_hand (${COLUMNS});
    create table bench_capture_data.history (
      position bigserial primary key, id text not null, type text not null, aggregate_type text, aggregate_id text,
      payload jsonb, changes jsonb, previous jsonb, metadata jsonb not null, occurred_at timestamptz not null,
      recorded_at timestamptz not null default clock_timestamp());
    create index on bench_capture_data.history (id);
    create index on bench_capture_data.history (aggregate_type, aggregate_id, position);
    create function bench_capture_data.keep() returns trigger language plpgsql as $$
    declare
      v_changes jsonb;
    begin
      if tg_op = 'UPDATE' then
        select jsonb_object_agg(n.key, jsonb_build_object('old', o.value, 'new', n.value)) into v_changes
          from jsonb_each(to_jsonb(new)) n join jsonb_each(to_jsonb(old)) o using (key)
         where n.value is distinct from o.value;
      end if;
      insert into bench_capture_data.history (id, type, aggregate_type, aggregate_id, payload, changes, previous, metadata, occurred_at)
      values (gen_random_uuid()::text, case tg_op when 'INSERT' then 'item.created' else 'item.updated' end, 'item', new.id,
        to_jsonb(new), v_changes, case when tg_op = 'UPDATE' then to_jsonb(old) end,
        jsonb_build_object('captured_from', 'by_hand', 'user_id', current_setting('app.user_id', true)), clock_timestamp());
      return null;
    end $$;
    create trigger by_hand after insert or update on bench_capture_data.by_hand
      for each row execute function bench_capture_data.keep();`
}

/** The server, the log, who holds it back, its partitions, and what doctor finds. */
import { bytes, number, span } from '../format.ts'
import { Command, Glyph, Head, Section, Waiting } from '../parts.tsx'
import { useRead } from '../state.tsx'

interface Status {
  server: { version: string; standby: boolean; role: string; host?: string; database?: string }
  schema: { name: string; state: string; version: number; latest: number; pending: string[] }
  log: {
    epoch: number
    head: string
    frontier: string
    lag: number
    wake: string
    problem: string | null
    holders: {
      pid: number | null
      prepared_gid: string | null
      application: string | null
      user: string | null
      state: string | null
      age_seconds: number | null
    }[]
  } | null
  processes: { process: string; host: string; pid: number; version: string; heartbeat_seconds_ago: number }[]
  partitions: { name: string; from: string; to: string | null; bytes: number }[]
}

interface Finding {
  level: 'ok' | 'warning' | 'error' | 'info'
  check: string
  message: string
  fix: string | null
}

export function Database() {
  const status = useRead<Status>('database', 3_000)
  const findings = useRead<{ items: Finding[] }>('findings', 30_000)
  return (
    <Waiting from={status}>
      {({ server, schema, log, partitions }) => (
        <>
          <Head
            title="Database"
            sentence={`PostgreSQL ${server.version}, schema ${schema.name} at version ${schema.version}${schema.state === 'current' ? '' : ` (${schema.state})`}.${log === null ? '' : ` The log is at ${number(log.head)}, final up to ${number(log.frontier)}.`}`}
          />
          <Section title="Findings" note="what doctor says" more={<span class="mono">npx aftercommit doctor</span>}>
            <Waiting from={findings}>
              {({ items }) => {
                const bad = items.filter(({ level }) => level !== 'ok')
                return (
                  <ol class="needs">
                    {bad.map((one) => (
                      <li class="need" key={`${one.check} ${one.message}`}>
                        <Glyph name={one.level === 'error' ? 'dead' : 'wait'} />
                        <div>
                          <h3>{one.check}</h3>
                          <p>{one.message}</p>
                          {one.fix !== null && (isCommand(one.fix) ? <Command text={one.fix} /> : <p>{one.fix}</p>)}
                        </div>
                      </li>
                    ))}
                    <li class="calm">
                      <Glyph name="done" />
                      <span>
                        {items.length - bad.length} checks found nothing{bad.length > 0 ? ' else' : ''}.
                      </span>
                    </li>
                  </ol>
                )
              }}
            </Waiting>
          </Section>
          <Section title="Who holds readers back" note={log?.holders.length ? `${log.holders.length}` : 'nobody'}>
            {log && log.holders.length > 0 && (
              <table class="tbl fold">
                <thead>
                  <tr>
                    <th>session</th>
                    <th>application</th>
                    <th>user</th>
                    <th>state</th>
                    <th class="r">open for</th>
                  </tr>
                </thead>
                <tbody>
                  {log.holders.map((one) => (
                    <tr key={`${one.pid} ${one.prepared_gid}`}>
                      <td class="head1 mono">{one.pid === null ? `prepared ${one.prepared_gid}` : `pid ${one.pid}`}</td>
                      <td data-l="application">{one.application}</td>
                      <td data-l="user">{one.user}</td>
                      <td data-l="state">{one.state}</td>
                      <td class="r" data-l="open for">
                        {one.age_seconds === null ? '–' : span(one.age_seconds * 1_000)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Section>
          <Section title="Partitions" note={String(partitions.length)}>
            <table class="tbl fold">
              <thead>
                <tr>
                  <th>partition</th>
                  <th class="r">from</th>
                  <th class="r">to</th>
                  <th class="r">size</th>
                </tr>
              </thead>
              <tbody>
                {partitions.map((one) => (
                  <tr key={one.name}>
                    <td class="head1 mono">{one.name}</td>
                    <td class="r mono" data-l="from">
                      {number(one.from)}
                    </td>
                    <td class="r mono" data-l="to">
                      {one.to === null ? 'open' : number(one.to)}
                    </td>
                    <td class="r" data-l="size">
                      {bytes(one.bytes)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Section>
        </>
      )}
    </Waiting>
  )
}

/** Some findings are mended by a command or SQL, others by hand. */
function isCommand(text: string): boolean {
  return /^(npx|alter|create|drop|grant|select|reindex|vacuum|call) /i.test(text)
}

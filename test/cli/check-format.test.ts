import { expect, it } from 'vitest'
import { printCheck } from '../../src/cli/check-format.ts'
import { createOutput } from '../../src/cli/output.ts'
import type { CheckReport } from '../../src/index.ts'

const counts = { instances: 9, events: 40, snapshots: 1, decisions: 0, redacted: 0, fromSnapshot: 2 }

function printed(report: CheckReport) {
  const out: string[] = []
  const err: string[] = []
  const streams = {
    stdout: { write: (part: string) => out.push(part) },
    stderr: { write: (part: string) => err.push(part) },
  }
  const flags = { json: false, quiet: false, verbose: false, color: false }
  printCheck(report, createOutput(flags, { ...streams, env: {} }))
  return { out: out.join(''), err: err.join('') }
}

it('says what was not checkable and which snapshots are not used, without calling either a finding', () => {
  const { out, err } = printed({ types: [{ type: 'lamp', ...counts, notCheckable: 3, outdated: 1 }], findings: [] })
  expect(out).toMatch(/FROM SNAPSHOT {2}NOT CHECKABLE\nlamp +9 +40 +1 +0 +0 +2 +3\n$/)
  expect(err).toContain('lamp: 3 instances not checkable: the first events were removed by retention.')
  expect(err).toContain('lamp: 1 instance not over, with a newest snapshot of another `snapshots.version`.')
  expect(err).toMatch(/Nothing was found\.\n$/)
})

it('says nothing of what there is none of, and spells out what would move the cursor', () => {
  const finding = {
    type: 'lamp',
    id: '\u001b[2J',
    version: 2,
    position: 7n,
    about: 'snapshot',
    message: 'It differs.',
  } as const
  const paths = [{ path: 'state.status', recorded: 'dark' }]
  const { out, err } = printed({
    types: [{ type: 'lamp', ...counts, notCheckable: 0, outdated: 0 }],
    findings: [{ ...finding, input: null, events: [], paths }],
  })
  expect(out).toContain('\nsnapshot  lamp/\\u001b[2J at event 2: It differs.\n')
  expect(out).toContain('\n  state.status: "dark" is recorded, nothing comes of it now\n')
  expect(err).toBe('\n1 finding.\n')
})

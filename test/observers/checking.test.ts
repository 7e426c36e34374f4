import { beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type ActionType,
  checkOnlyPorts,
  createChecking,
  loadConfigurationFile,
  type ObserverOptions,
} from '../../src/observers/index.ts'

type Contexts = ReturnType<Parameters<typeof createChecking>[0]['takeContexts']>

let prepared: string[]
let checking: ReturnType<typeof createChecking>
let ports: ReturnType<typeof checkOnlyPorts>

/** An action type that tells which of its actions are prepared; every configuration opens one context. */
beforeEach(() => {
  prepared = []
  const note: ActionType<{ of: string }> = {
    type: 'note',
    schema: z.strictObject({ of: z.string() }),
    defaultRetry: 'local',
    prepare({ of }) {
      prepared.push(of)
      return {
        destination: null,
        singleAttempt: false,
        run: () => ({ actionType: 'note', success: true, message: of, durationMs: 0 }),
        preview: () => ({ actionType: 'note', destination: null, content: {} }),
      }
    },
  }
  const real = checkOnlyPorts({}, [note as ActionType])
  let opened: Contexts = []
  ports = {
    ...real,
    prepare(settings) {
      opened.push({ name: `context ${++contexts}` } as unknown as Contexts[number])
      return real.prepare!(settings)
    },
  }
  let contexts = 0
  const takeContexts = () => {
    const taken = opened
    opened = []
    return taken
  }
  checking = createChecking({ ports, takeContexts })
})

const note = (of: string) => ({ on: 'lamp.lit', actions: [{ type: 'note', of }] })
const namesOf = (contexts: readonly unknown[]) => (contexts as { name: string }[]).map(({ name }) => name)

async function fileOf(...names: string[]) {
  const text = names.map(
    (name) => `[observers.${name}]\non = "lamp.lit"\nactions = [{ type = "note", of = "${name}" }]`,
  )
  const checked = await loadConfigurationFile({ text: text.join('\n'), name: 'a.toml' }, ports)
  if (!checked.ok) throw new Error(checked.mistakes[0]!.message)
  return checked
}

it('what the program added is prepared once, however much more it adds', () => {
  const added = new Map<string, ReturnType<typeof note>>()
  for (let n = 1; n <= 50; n++) {
    added.set(`own-${n}`, note(`own-${n}`))
    expect(checking.check(undefined, added).observers).toHaveLength(n)
  }
  expect(prepared).toHaveLength(50)
  added.set('own-1', note('another'))
  checking.check(undefined, added)
  expect(prepared.slice(50)).toEqual(['another'])
})

it('another file has other settings, so everything is prepared for it', async () => {
  const added = new Map([['own', note('own')]])
  checking.check(undefined, added)
  const file = await fileOf('filed')
  const { observers } = checking.check(file, added)
  expect(observers.map(({ name }) => name)).toEqual(['filed', 'own'])
  expect(prepared).toEqual(['own', 'filed', 'own'])
})

it('what a file has opened is kept for as long as the file counts, whatever the program adds or fails to', async () => {
  const file = await fileOf('filed')
  const added = new Map([['own', note('own')]])
  const first = checking.check(file, added)
  expect(namesOf(first.contexts)).toEqual(['context 1', 'context 2'])
  const wrong = { on: 'lamp.lit', actions: [{ type: 'note' }] }
  expect(() => checking.check(file, new Map<string, ObserverOptions>([...added, ['wrong', wrong]]))).toThrow('wrong')
  checking.forget()
  const next = checking.check(file, added)
  expect(namesOf(next.contexts)).toEqual(['context 1', 'context 3'])
  const other = checking.check(await fileOf('other'), added)
  expect(namesOf(other.contexts)).toEqual(['context 4', 'context 5'])
})

it('a name that the file and the program both have is refused', async () => {
  const file = await fileOf('twice')
  expect(() => checking.check(file, new Map([['twice', note('own')]]))).toThrow('"twice" is in the file and was added')
})

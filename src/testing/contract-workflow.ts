/** The workflow that contract scenarios play with: an input says what is to follow from it. */
import { AftercommitError } from '../errors.ts'
import { GiveUp } from '../subscriptions/index.ts'
import { accept, defineWorkflow, reject, type Timer, type Workflow, type WorkflowOptions } from '../workflows/index.ts'

export interface Line {
  readonly id: string
  /** What happens; `end` ends the instance. */
  readonly say?: readonly string[]
  readonly ask?: readonly string[]
  readonly later?: readonly { readonly ms: number; readonly key?: string; readonly line: Line }[]
  readonly cancel?: readonly string[]
  readonly refuse?: string
  readonly key?: string
  readonly again?: Line
  /** Nothing can be decided. */
  readonly giveUp?: boolean
}

/** A word that was said. */
export interface Said {
  readonly type: 'said'
  readonly word: string
}

/** A word that goes out into the world. What begins with `report` is reported when it cannot be done. */
export interface Asked {
  readonly type: 'asked'
  readonly word: string
}

export interface Spoken {
  readonly words: readonly string[]
}

export type Play = Workflow<Spoken, Line, Said, Asked, string>

export function definePlay(type: string, more: Partial<WorkflowOptions<Spoken, Line, Said, Asked, string>> = {}): Play {
  return defineWorkflow<Spoken, Line, Said, Asked, string>({
    type,
    id: ({ id }) => id,
    initial: () => ({ words: [] }),
    evolve: ({ words }, { word }) => ({ words: [...words, word] }),
    isTerminal: ({ words }) => words.at(-1) === 'end',
    uniqueKey: ({ key }) => key,
    decide(_, { refuse, say = [], ask = [], later = [], cancel = [], again, giveUp = false }) {
      if (giveUp) throw new GiveUp('a mistake')
      if (refuse !== undefined) return reject(refuse)
      // An input that says nothing is a mistake that some scenario makes on purpose.
      const events = say.map((word) => ({ type: 'said' as const, word })) as unknown as readonly [Said, ...Said[]]
      return accept(events, {
        effects: ask.map((word) => ({ type: 'asked' as const, word })),
        timers: later.map(toTimer),
        cancelTimers: cancel,
        continueAsNew: again,
      })
    },
    onDeadLetter(letter) {
      const word = letter.kind === 'effect' ? letter.effect.word : (letter.key ?? '')
      return word.startsWith('report') ? { id: letter.workflow.id, say: [`failed ${word}`, 'end'] } : undefined
    },
    ...more,
  })
}

function toTimer({ ms, key, line }: NonNullable<Line['later']>[number]): Timer<Line> {
  return { input: line, key, due: { afterMs: ms } }
}

/** The code of the error that `work` fails with. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'it succeeded'
  } catch (error) {
    return error instanceof AftercommitError ? error.code : String(error)
  }
}

/** What `deliveries retry` and `deliveries cancel` have in common: find out which, show them, ask, do, and say what was done. */
import type { Aftercommit, DeliveryFilter, DeliveryRecord } from '../index.ts'
import { confirm } from './confirm.ts'
import { type DeliveryFilterOptions, isDeliveryFiltered, toDeliveryFilter } from './delivery-filter.ts'
import { DELIVERY_COLUMNS, toDeliveryRow } from './delivery-format.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { UsageError } from './failure.ts'
import type { Invocation } from './invocation.ts'
import { type OperatorOptions, toAction } from './operator.ts'
import type { Output } from './output.ts'

export interface ChangeOptions extends DeliveryFilterOptions, OperatorOptions {
  readonly allMatching?: boolean
  readonly dryRun?: boolean
}

export interface Change {
  readonly verb: 'retry' | 'cancel'
  readonly question: (deliveries: string) => string
  readonly done: (deliveries: string) => string
  /** Of those that were chosen, the ones it can be done to. */
  readonly only: DeliveryFilter
  /** Why one that was named cannot be meant; undefined when it can. */
  readonly refuses: (one: DeliveryRecord) => string | undefined
}

/** Shown before the question. */
const SAMPLE = 5

export async function changeDeliveries(
  ids: readonly bigint[],
  { verb, question, done, only, refuses }: Change,
  invocation: Invocation<ChangeOptions>,
): Promise<ExitCode> {
  const { options, output } = invocation
  const chosen = { ...choose(ids, options), ...only }
  const ac = await invocation.open()
  await sayWhatIsLeftOut(ac, ids, refuses, output)
  const matched = sum(await ac.deliveries.count(chosen))
  const sample = await ac.deliveries.list({ ...chosen, limit: SAMPLE, newest: true })
  const newest = sample[0]
  if (newest === undefined) {
    if (output.json) output.document({ matched: 0, changed: 0 })
    else output.data('No delivery matches; nothing was done.')
    return ids.length > 0 ? EXIT.failure : EXIT.ok
  }
  if (!output.json) showSample(sample, matched, output)
  if (options.dryRun) {
    if (output.json) output.document({ matched, changed: 0 })
    else output.data(`\nWould ${verb} ${count(matched)}; nothing was done.`)
    return EXIT.ok
  }
  if (!(await confirm(invocation, question(count(matched))))) {
    output.talk('Nothing was done.')
    return EXIT.failure
  }
  // What was added while somebody thought about the question was not part of it.
  const changed = await ac.deliveries[verb]({ ...chosen, before: newest.id + 1n }, toAction(options))
  if (output.json) output.document({ matched, changed })
  else output.data(done(count(changed)))
  if (changed >= ids.length) return EXIT.ok
  return changed === 0 ? EXIT.failure : EXIT.partial
}

function choose(ids: readonly bigint[], options: ChangeOptions): DeliveryFilter {
  const filtered = isDeliveryFiltered(options)
  if (ids.length > 0 && (options.allMatching || filtered)) {
    throw new UsageError('Name deliveries by id, or choose them with --all-matching and filters; not both.')
  }
  if (ids.length > 0) return { ids }
  if (options.allMatching) return toDeliveryFilter(options)
  throw new UsageError(
    filtered
      ? 'Filters alone change nothing, so nothing was done. Add --all-matching to mean every delivery that matches.'
      : 'No delivery was named, so nothing was done. Give ids, or --all-matching with filters.',
  )
}

/** Ids that name nothing, or nothing that can be meant, each with the reason. */
async function sayWhatIsLeftOut(
  ac: Aftercommit,
  ids: readonly bigint[],
  refuses: Change['refuses'],
  output: Output,
): Promise<void> {
  const found = ids.length === 0 ? [] : await ac.deliveries.list({ ids, limit: Math.min(ids.length, 1_000) })
  for (const id of ids) {
    const one = found.find((each) => each.id === id)
    const why = one === undefined ? `There is no delivery ${id}.` : refuses(one)
    if (why !== undefined) output.warn(why)
  }
}

function showSample(sample: readonly DeliveryRecord[], matched: number, output: Output): void {
  output.table(DELIVERY_COLUMNS, sample.map(toDeliveryRow))
  if (matched > sample.length) output.data(`… and ${matched - sample.length} more`)
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, one) => total + one, 0)
}

function count(deliveries: number): string {
  return `${deliveries} ${deliveries === 1 ? 'delivery' : 'deliveries'}`
}

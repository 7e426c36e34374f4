/** Sends captured statements again, each in a transaction that is rolled back, and collects the plans the server used. */
import type pg from 'pg'
import { connect } from '../../support/database.ts'
import type { Statement } from './capture.ts'

export interface PlanTree {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Cond'?: string
  readonly 'Index Name'?: string
  readonly Filter?: string
  readonly Plans?: readonly PlanTree[]
}

export interface UsedPlan {
  readonly text: string
  /** The innermost function it ran in; undefined for the statement itself. */
  readonly inside: string | undefined
  readonly tree: PlanTree
  readonly isCompiled: boolean
}

export interface Replay {
  play(statement: Statement): Promise<readonly UsedPlan[]>
  /** From here on; plans that were kept are forgotten. */
  use(planCacheMode: string): Promise<void>
}

export async function openReplay(url: string): Promise<Replay> {
  const sql: pg.Client = await connect(url)
  let plans: UsedPlan[] = []
  sql.on('notice', ({ message = '', where = '' }) => {
    if (!message.includes('plan:\n')) return
    const plan = JSON.parse(message.slice(message.indexOf('{')))
    const inside = /function (?:"?\w+"?\.)?(\w+)\(/.exec(where)?.[1]
    plans.push({ text: plan['Query Text'], inside, tree: plan.Plan, isCompiled: plan.JIT !== undefined })
  })
  await sql.query(`load 'auto_explain'`)
  for (const [name, value] of Object.entries({
    jit: 'on',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_level': 'notice',
    'auto_explain.log_format': 'json',
  })) {
    await sql.query(`set ${name} = '${value}'`)
  }
  async function explain(text: string, values: readonly unknown[]): Promise<UsedPlan> {
    const { rows } = await sql.query(`explain (format json) ${text}`, [...values])
    const [plan] = rows[0]['QUERY PLAN']
    return { text, inside: undefined, tree: plan.Plan, isCompiled: false }
  }

  return {
    async play({ text, values }) {
      plans = []
      await sql.query('begin')
      try {
        await sql.query(text, [...values])
      } catch (error) {
        if (!(error as { code?: string }).code) throw error
      }
      await sql.query('rollback')
      // A second time it may be refused, and then the server reports no plan by itself.
      return plans.length > 0 ? plans : [await explain(text, values)]
    },
    async use(planCacheMode) {
      await sql.query(`set plan_cache_mode = ${planCacheMode}`)
      await sql.query('discard plans')
    },
  }
}

export interface Relations {
  readonly growing: ReadonlySet<string>
  /** Indexes with a condition of their own, which hold few of the rows. */
  readonly partial: ReadonlySet<string>
}

/** What a plan does to growing tables that takes longer the more rows they have. */
export function offences(tree: PlanTree, { growing, partial }: Relations): string[] {
  const type = tree['Node Type']
  const relation = tree['Relation Name']
  const own: string[] = []
  if (relation !== undefined && growing.has(relation) && /^(Seq|Bitmap Heap|Sample)/.test(type)) {
    own.push(`${type} of ${relation}`)
  }
  if (
    relation !== undefined &&
    growing.has(relation) &&
    tree.Filter !== undefined &&
    tree['Index Cond'] === undefined
  ) {
    const index = tree['Index Name']
    if (index !== undefined && !partial.has(index)) own.push(`walk along ${index} with a filter`)
  }
  if (/Sort$/.test(type)) {
    const sorted = scanned(tree).filter((name) => growing.has(name))
    if (sorted.length > 0) own.push(`${type} of ${[...new Set(sorted)].join(', ')}`)
  }
  return [...own, ...(tree.Plans ?? []).flatMap((child) => offences(child, { growing, partial }))]
}

/** Tables below a node; a limit in between bounds what comes up. */
function scanned(tree: PlanTree): string[] {
  if (tree['Node Type'] === 'Limit') return []
  const own = tree['Relation Name']
  return [...(own === undefined ? [] : [own]), ...(tree.Plans ?? []).flatMap(scanned)]
}

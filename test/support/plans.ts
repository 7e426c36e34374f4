/** The plan of every statement that runs on a database, and of those inside functions, as auto_explain reports it. */
import pg from 'pg'
import { onTestFinished, vi } from 'vitest'
import { connect } from './database.ts'

export interface Plan {
  readonly text: string
  /** Functions it ran in, by name, the innermost first. */
  readonly functions: readonly string[]
  /** The server compiled it to machine code before it ran. */
  readonly compiled: boolean
  /** From the outermost to the innermost. */
  readonly nodes: readonly PlanNode[]
}

export interface PlanNode {
  /** `Index Scan`, `Sort`, … */
  readonly type: string
  /** The table, of a scan. */
  readonly relation: string | undefined
  /** Rows that it read in all its loops: those it gave and those it dropped. Zero for a part that did not run. */
  readonly rows: number
}

/** From here on, for connections that are made later in this process. */
export async function plansOf(url: string): Promise<readonly Plan[]> {
  const plans: Plan[] = []
  const clients = pg.Client.prototype as unknown as { connect(...given: unknown[]): unknown }
  const connectClient = clients.connect
  const spy = vi.spyOn(clients, 'connect').mockImplementation(function (this: unknown, ...given) {
    const client = this as pg.Client
    client.on('notice', ({ message = '', where = '' }) => {
      if (!message.includes('plan:\n')) return
      const plan = JSON.parse(message.slice(message.indexOf('{')))
      const functions = [...where.matchAll(/function (?:\w+\.)?(\w+)\(/g)].map(([, name]) => name!)
      plans.push({ text: plan['Query Text'], functions, compiled: plan.JIT !== undefined, nodes: nodesOf(plan.Plan) })
    })
    return connectClient.apply(client, given)
  })
  onTestFinished(() => spy.mockRestore())
  const sql = await connect(url)
  const { rows } = await sql.query('select quote_ident(current_database()) as name')
  const settings = {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_nested_statements': 'on',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_timing': 'off',
    'auto_explain.log_level': 'notice',
    'auto_explain.log_format': 'json',
  }
  for (const [name, value] of Object.entries(settings)) {
    await sql.query(`alter database ${rows[0].name} set ${name} = '${value}'`)
  }
  return plans
}

interface JsonNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly JsonNode[]
}

function nodesOf(node: JsonNode): PlanNode[] {
  const { 'Actual Rows': given = 0, 'Actual Loops': loops = 0, 'Rows Removed by Filter': dropped = 0 } = node
  const own = { type: node['Node Type'], relation: node['Relation Name'], rows: (given + dropped) * loops }
  return [own, ...(node.Plans ?? []).flatMap(nodesOf)]
}

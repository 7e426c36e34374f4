/** The client libraries whose transactions we join, each driven through the same few calls. */
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import type { CallerSession, CallerTransaction } from '../../src/postgres/index.ts'
import { openPool } from '../log/support/pool-of.ts'
import { openDatabase } from '../support/database.ts'

export interface ClientLibrary {
  /** Runs `fn` in a transaction of the library; what `fn` throws rolls it back. */
  transaction(fn: (tx: CallerTransaction) => Promise<void>): Promise<void>
  /** The pool or root client, outside of any transaction. */
  plain: CallerSession
  /** Statements sent so far, where the library tells. */
  readonly sent?: () => number
  close(): Promise<unknown>
}

export const LIBRARIES: Record<string, (url: string) => ClientLibrary | Promise<ClientLibrary>> = {
  'our own transaction': (url) => {
    const db = openDatabase({ database: url })
    return { transaction: (fn) => db.transaction(fn), plain: db, close: () => db.close() }
  },

  pg: (url) => {
    const pool = openPool(url, 1)
    const sent = countOf(pool)
    return {
      plain: pool,
      sent,
      async transaction(fn) {
        const client = await pool.connect()
        try {
          await client.query('begin')
          await fn(client)
          await client.query('commit')
        } catch (error) {
          await client.query('rollback')
          throw error
        } finally {
          client.release()
        }
      },
      close: () => pool.end(),
    }
  },

  'postgres.js': (url) => {
    let sent = 0
    const sql = postgres({ ...connection(url), max: 1, debug: () => sent++ })
    return {
      plain: sql,
      sent: () => sent,
      transaction: async (fn) => void (await sql.begin((tx) => fn(tx))),
      close: () => sql.end(),
    }
  },

  'Drizzle on node-postgres': (url) => {
    const pool = openPool(url, 1)
    const db = drizzlePg(pool)
    return { plain: db, sent: countOf(pool), transaction: (fn) => db.transaction(fn), close: () => pool.end() }
  },

  'Drizzle on postgres.js': (url) => {
    let sent = 0
    const sql = postgres({ ...connection(url), max: 1, debug: () => sent++ })
    const db = drizzlePostgresJs(sql)
    return { plain: db, sent: () => sent, transaction: (fn) => db.transaction(fn), close: () => sql.end() }
  },

  Kysely: (url) => {
    let sent = 0
    const db = new Kysely<unknown>({
      dialect: new PostgresDialect({ pool: openPool(url, 1) }),
      plugins: [new CamelCasePlugin()],
      log: () => void sent++,
    })
    const transaction = (fn: (tx: CallerTransaction) => Promise<void>) => db.transaction().execute(fn)
    return { plain: db, sent: () => sent, transaction, close: () => db.destroy() }
  },

  Prisma: async (url) => {
    let sent = 0
    const prisma = await createPrisma(url)
    prisma.$on('query', () => sent++)
    const transaction = (fn: (tx: CallerTransaction) => Promise<void>) => prisma.$transaction(fn)
    return { plain: prisma, sent: () => sent, transaction, close: () => prisma.$disconnect() }
  },
}

export interface PrismaClient {
  $queryRawUnsafe(query: string): Promise<never[]>
  $executeRawUnsafe(query: string): Promise<number>
  $connect(): Promise<void>
  $on(event: 'query', listener: () => void): void
  $transaction(fn: (tx: CallerTransaction) => Promise<void>): Promise<void>
  $disconnect(): Promise<void>
}

/**
 * What `prisma generate` writes for a schema without models. Generating would download an engine that is of no use
 * here; the runtime and the compiler come with the package.
 */
async function createPrisma(url: string): Promise<PrismaClient> {
  const runtime = '@prisma/client/runtime'
  const { default: client } = await import(/* @vite-ignore */ `${runtime}/client`)
  const { PrismaPg } = await import(/* @vite-ignore */ '@prisma/adapter-pg'.slice())
  const Client = client.getPrismaClient({
    previewFeatures: [],
    clientVersion: '7',
    engineVersion: '7',
    activeProvider: 'postgresql',
    inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: 'AAAA' },
    compilerWasm: {
      getRuntime: () => import(/* @vite-ignore */ `${runtime}/query_compiler_fast_bg.postgresql.mjs`),
      getQueryCompilerWasmModule: async () => {
        const { wasm } = await import(/* @vite-ignore */ `${runtime}/query_compiler_fast_bg.postgresql.wasm-base64.mjs`)
        return Reflect.construct(Reflect.get(globalThis, 'WebAssembly').Module, [Buffer.from(wasm, 'base64')])
      },
      importName: './query_compiler_fast_bg.js',
    },
  })
  return new Client({ adapter: new PrismaPg({ connectionString: url }), log: [{ emit: 'event', level: 'query' }] })
}

export async function isPrismaInstalled(): Promise<boolean> {
  try {
    await import(/* @vite-ignore */ '@prisma/adapter-pg'.slice())
    return true
  } catch {
    return false
  }
}

/** postgres.js does not read a socket folder from a URL. */
function connection(url: string) {
  const { host, port, user, password, database } = new pg.Client(url)
  const target = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
  return { ...target, user: user!, database: database!, ...(password && { password }) }
}

function countOf(pool: pg.Pool): () => number {
  let sent = 0
  pool.on('connect', (client) => {
    const original = client.query
    client.query = ((...parameters: unknown[]) => {
      sent++
      return Reflect.apply(original, client, parameters)
    }) as typeof client.query
  })
  return () => sent
}

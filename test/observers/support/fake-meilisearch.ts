/**
 * The document and task API of Meilisearch, as far as we use it and as its reference describes it: writes are taken with
 * 202 and done later, in order, by tasks that succeed or fail. A fake: it shows that we keep to the published contract,
 * not that a release of theirs does.
 */
import type { ServerResponse } from 'node:http'
import { type HttpReceiver, httpReceiver, type ReceivedCall } from '../../support/receivers.ts'

export interface FakeMeilisearch extends HttpReceiver {
  /** By `index/id`. */
  documents(): Record<string, unknown>
  /** Tasks wait until it is false again. */
  isPaused: boolean
  /** How the next tasks end, in place of being done. */
  readonly failures: { type: string; code: string }[]
}

interface Task {
  readonly uid: number
  readonly run: () => { type: string; code: string } | undefined
  status: 'enqueued' | 'succeeded' | 'failed'
  error: { type: string; code: string } | undefined
}

export async function fakeMeilisearch(): Promise<FakeMeilisearch> {
  const indexes = new Map<string, Map<string, Record<string, unknown>>>()
  const tasks: Task[] = []
  const failures: { type: string; code: string }[] = []

  function enqueue(response: ServerResponse, run: Task['run']): void {
    tasks.push({ uid: tasks.length, run, status: 'enqueued', error: undefined })
    json(response, 202, { taskUid: tasks.length - 1, status: 'enqueued', type: 'documentAdditionOrUpdate' })
  }

  /** Looked at is when they are worked on: a task is never done before somebody has seen it wait. */
  function work(): void {
    if (fake.isPaused) return
    for (const task of tasks.filter(({ status }) => status === 'enqueued')) {
      task.error = failures.shift() ?? task.run()
      task.status = task.error ? 'failed' : 'succeeded'
    }
  }

  function answer(response: ServerResponse, { method, path, body }: ReceivedCall): unknown {
    const url = new URL(path, 'http://fake')
    const [, first, index = '', kind, id] = url.pathname.split('/').map(decodeURIComponent)
    if (first === 'health') return json(response, 200, { status: 'available' })
    if (first === 'tasks') {
      const { run: _, ...task } = tasks[Number(index)]!
      work()
      return json(response, 200, task)
    }
    if (first !== 'indexes' || kind !== 'documents') return json(response, 404, { code: 'not_found' })
    if (method === 'GET') {
      const found = indexes.get(index)?.get(id!)
      if (!found) return json(response, 404, { code: 'document_not_found', type: 'invalid_request' })
      const fields = url.searchParams.get('fields')?.split(',') ?? Object.keys(found)
      return json(response, 200, Object.fromEntries(fields.map((field) => [field, found[field]])))
    }
    if (method === 'DELETE') {
      return enqueue(response, () => {
        if (!indexes.has(index)) return { type: 'invalid_request', code: 'index_not_found' }
        indexes.get(index)!.delete(id!)
        return undefined
      })
    }
    const [document] = JSON.parse(body) as Record<string, unknown>[]
    const primaryKey = url.searchParams.get('primaryKey')!
    return enqueue(response, () => {
      const documents = indexes.get(index) ?? new Map()
      indexes.set(index, documents.set(String(document![primaryKey]), document))
      return undefined
    })
  }

  const fake = Object.assign(await httpReceiver(answer), {
    isPaused: false,
    failures,
    documents: () =>
      Object.fromEntries([...indexes].flatMap(([index, all]) => [...all].map(([id, one]) => [`${index}/${id}`, one]))),
  })
  return fake
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

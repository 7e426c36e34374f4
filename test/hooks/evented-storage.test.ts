/** Evented storage over a store that is not Postgres: after success, at most once. */
import { describe, expect, it } from 'vitest'
import { changesBetween } from '../../src/hooks/image-changes.ts'
import { eventedStorage, type StorageEvent } from '../../src/hooks/index.ts'

interface Note {
  id: string
  text: string
  secret?: string
}

function openStore({ emitting = async (_: readonly StorageEvent[]) => {} } = {}) {
  const emitted: StorageEvent[] = []
  const store = new NoteStore()
  const notes = eventedStorage(store, {
    entity: 'note',
    store: 'foreign',
    image: ({ secret: _, ...note }: Note) => note,
    async emit(_: undefined, events: readonly StorageEvent[]) {
      await emitting(events)
      emitted.push(...events)
    },
  })
  return { store, notes, emitted }
}

describe('a foreign store', () => {
  it('emits after each write, with the images before and after and what changed', async () => {
    const { notes, emitted } = openStore()
    await notes.create({ id: '1', text: 'a', secret: 's' })
    await notes.update('1', { text: 'b' })
    await notes.delete('1')
    const aggregate = { type: 'note', id: '1' }
    expect(emitted).toEqual([
      { type: 'note.created', aggregate, payload: { id: '1', text: 'a' } },
      {
        type: 'note.updated',
        aggregate,
        payload: { id: '1', text: 'b' },
        previous: { id: '1', text: 'a' },
        changes: { text: { old: 'a', new: 'b' } },
      },
      { type: 'note.deleted', aggregate, payload: { id: '1', text: 'b' }, previous: { id: '1', text: 'b' } },
    ])
  })

  it('emits nothing for a write that failed, changed nothing or met nothing', async () => {
    const { notes, emitted } = openStore()
    await notes.create({ id: '1', text: 'a' })
    await expect(notes.create({ id: '1', text: 'again' })).rejects.toThrow('exists')
    await notes.update('1', { text: 'a' })
    await notes.update('1', { secret: 'not part of the image' })
    await notes.delete('2')
    expect(emitted.map(({ type }) => type)).toEqual(['note.created'])
  })

  it('says when the write succeeded and the event was lost', async () => {
    const { notes, store } = openStore({ emitting: () => Promise.reject(new Error('the log is away')) })
    await expect(notes.create({ id: '1', text: 'a' })).rejects.toMatchObject({
      code: 'EVENT_NOT_EMITTED',
      message: expect.stringContaining('The write succeeded, but "note.created" could not be emitted'),
    })
    expect(await store.get('1')).not.toBe(null)
  })

  it('keeps what belongs to a transaction back until it has succeeded, and drops it otherwise', async () => {
    const { notes, emitted } = openStore()
    const failed = notes.transaction(async (within) => {
      await within.create({ id: '1', text: 'a' })
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    expect(emitted).toEqual([])
    const result = await notes.transaction(async (within) => {
      await within.create({ id: '2', text: 'a' })
      await within.update('2', { text: 'b' })
      expect(emitted).toEqual([])
      return 'result'
    })
    expect(result).toBe('result')
    expect(emitted.map(({ type }) => type)).toEqual(['note.created', 'note.updated'])
  })

  it('leaves everything else of the repository as it is, private fields included', async () => {
    const { notes, emitted } = openStore()
    await notes.create({ id: '1', text: 'a' })
    expect(notes.size).toBe(1)
    expect(await notes.copy('1', '2')).toMatchObject({ id: '2', text: 'a' })
    expect(emitted).toHaveLength(1)
    expect('createMany' in notes).toBe(false)
  })
})

it('over Postgres a repository needs transactions', () => {
  const nothing = async () => null
  const repository = { get: nothing, create: nothing, update: nothing, delete: nothing }
  expect(() => eventedStorage(repository, { entity: 'note', emit: nothing })).toThrow("store: 'foreign'")
})

describe('changes', () => {
  it('are the fields whose JSON differs, whatever they are called', () => {
    const before = { same: { a: [1] }, date: new Date(0), gone: 1, nothing: undefined, ['__proto__']: 1 }
    const after = { same: { a: [1] }, date: new Date(0), came: 2, nothing: null, ['__proto__']: 2 }
    const changes = changesBetween(before, after)!
    expect(Object.keys(changes).sort()).toEqual(['__proto__', 'came', 'gone'])
    expect(changes.gone).toEqual({ old: 1, new: null })
    expect(Object.getOwnPropertyDescriptor(changes, '__proto__')!.value).toEqual({ old: 1, new: 2 })
    expect(Object.getPrototypeOf(changes)).toBe(Object.prototype)
    expect(changesBetween(before, before)).toBe(undefined)
  })
})

class NoteStore {
  readonly #notes = new Map<string, Note>()

  get size(): number {
    return this.#notes.size
  }

  async get(id: string): Promise<Note | null> {
    return this.#notes.get(id) ?? null
  }

  async create(note: Note): Promise<Note> {
    if (this.#notes.has(note.id)) throw new Error('exists')
    this.#notes.set(note.id, note)
    return note
  }

  async update(id: string, changes: Partial<Note>): Promise<void> {
    const note = this.#notes.get(id)
    if (note) this.#notes.set(id, { ...note, ...changes })
  }

  async delete(id: string): Promise<boolean> {
    return this.#notes.delete(id)
  }

  async copy(from: string, to: string): Promise<Note> {
    return this.create({ ...this.#notes.get(from)!, id: to })
  }

  async transaction<T>(fn: (within: NoteStore) => Promise<T>): Promise<T> {
    const saved = new Map(this.#notes)
    try {
      return await fn(this)
    } catch (error) {
      this.#notes.clear()
      for (const [id, note] of saved) this.#notes.set(id, note)
      throw error
    }
  }
}

/** Dead letters and parked events of subscriptions: src/dead-letters/. */
import { changed, rowsOf, valueAs } from './answers.ts'
import { move } from './saves.ts'
import type { Statement } from './statements.ts'
import type { Store } from './store.ts'
import type { LetterRow } from './tables.ts'

export const LETTERS = {
  writeLetter: {
    says: /unparked as \(/,
    run(store, [id, term, position, done, eventId, kind, key, at, event, error, attempts, , parks, server]) {
      const partition = store.ours(id as string, term as string, server as string)
      if (!partition) return rowsOf([{ moved: false, written: false }])
      partition.trying = null
      partition.tries = 0
      const known = store.letters.find((one) => one.kind === kind && one.owner === id && one.eventId === eventId)
      if (parks) {
        for (const letter of lettersOf(store, id as string, key as string)) {
          if (letter.parks && isOver(letter) && letter.eventId !== eventId) letter.parks = false
        }
      }
      if (known) {
        known.error = error as string
        known.attempts += Number(attempts)
        known.status = 'dead'
        known.parks = parks as boolean
      } else {
        store.letters.push({
          id: store.nextId++,
          kind: kind as string,
          owner: id as string,
          key: key as string,
          eventId: eventId as string,
          position: Number(at),
          event: event as string,
          error: error as string,
          attempts: Number(attempts),
          status: 'dead',
          parks: parks as boolean,
          streak: false,
          delivery: null,
        })
      }
      store.parked = store.parked.filter((one) => one.owner !== id || one.position !== Number(at))
      store.witness.onLeft('letter', id as string, eventId as string, Number(term))
      move(store, partition, term!, { position: Number(position), done: done as string, lastEventId: eventId })
      return rowsOf([{ moved: true, written: true }])
    },
  },
  parkEvents: {
    says: /\.parked \(owner, position, key, event\)/,
    run(store, [id, term, position, done, copies, server]) {
      const partition = store.ours(id as string, term as string, server as string)
      if (!partition) return valueAs('moved', false)
      for (const copy of JSON.parse(copies as string) as { position: string; key: string; event: object }[]) {
        const at = Number(copy.position)
        if (store.parked.some((one) => one.owner === id && one.position === at)) continue
        store.parked.push({ owner: id as string, position: at, key: copy.key, event: JSON.stringify(copy.event) })
      }
      move(store, partition, term!, { position: Number(position), done: done as string })
      return valueAs('moved', true)
    },
  },
  selectParkedKeys: {
    says: /^select key from \S+ where kind = 'subscription'/,
    run(store, [id]) {
      const letters = store.letters.filter(({ kind, owner, parks }) => kind === 'subscription' && owner === id && parks)
      const keys = [...letters, ...store.parked.filter(({ owner }) => owner === id)].map(({ key }) => key)
      return rowsOf([...new Set(keys)].map((key) => ({ key })))
    },
  },
  selectMarked: {
    says: /^select id::text as letter, key, parks/,
    run(store, [id]) {
      const marked = store.letters.filter((letter) => letter.owner === id && isMarked(letter))
      marked.sort((one, other) => one.position - other.position)
      return rowsOf(
        marked
          .slice(0, 50)
          .map(({ id: letter, key, parks, event, status }) => ({ letter: String(letter), key, parks, event, status })),
      )
    },
  },
  selectMarkedOwners: {
    says: /^select distinct owner\s/,
    run(store, [ids]) {
      const asked = JSON.parse(ids as string) as string[]
      const owners = store.letters.filter((one) => asked.includes(one.owner) && isMarked(one)).map(({ owner }) => owner)
      return rowsOf([...new Set(owners)].map((owner) => ({ owner })))
    },
  },
  resolveLetter: {
    says: /set status = case when status = 'redriving' then 'resolved'/,
    run(store, [id, term, letter]) {
      const found = store.letters.find((one) => one.id === Number(letter))
      if (!found || !store.ours(id as string, term as string)) return changed(0)
      if (found.status === 'redriving') found.status = 'resolved'
      return changed(1)
    },
  },
  returnLetter: {
    says: /set status = 'dead', error = /,
    run(store, [id, term, letter, error, attempts]) {
      const partition = store.ours(id as string, term as string)
      const found = store.letters.find((one) => one.id === Number(letter))
      if (!partition || !found) return changed(0)
      partition.trying = null
      partition.tries = 0
      found.status = 'dead'
      found.error = error as string
      found.attempts += Number(attempts)
      return changed(1)
    },
  },
  selectParked: {
    says: /^select event::text as event/,
    run(store, [id, key]) {
      const holding = lettersOf(store, id as string, key as string).filter((letter) => letter.parks && !isOver(letter))
      const waiting = store.parked.filter(
        (one) => one.owner === id && one.key === key && !holding.some(({ position }) => position < one.position),
      )
      waiting.sort((one, other) => one.position - other.position)
      return rowsOf(waiting.slice(0, 50).map(({ event }) => ({ event })))
    },
  },
  removeParked: {
    says: /^delete from \S+\.parked/,
    run(store, [id, term, position]) {
      if (!store.ours(id as string, term as string)) return changed(0)
      const before = store.parked.length
      store.parked = store.parked.filter((one) => one.owner !== id || one.position !== Number(position))
      return changed(before - store.parked.length)
    },
  },
  freeKey: {
    says: /select not exists \(select from busy\) as free/,
    run(store, [id, term, key]) {
      const letters = lettersOf(store, id as string, key as string).filter(({ parks }) => parks)
      const isBusy =
        store.parked.some((one) => one.owner === id && one.key === key) || letters.some((letter) => !isOver(letter))
      if (!isBusy && store.ours(id as string, term as string)) for (const letter of letters) letter.parks = false
      return valueAs('free', !isBusy)
    },
  },
  markStreak: {
    says: /set streak = true/,
    run(store, [id, eventIds, term]) {
      if (!store.ours(id as string, term as string)) return changed(0)
      const asked = JSON.parse(eventIds as string) as string[]
      const found = store.letters.filter(
        ({ kind, owner, eventId }) => kind === 'subscription' && owner === id && asked.includes(eventId),
      )
      for (const letter of found) letter.streak = true
      return changed(found.length)
    },
  },
  redriveStreak: {
    says: /streak = false, who = 'aftercommit'/,
    run(store, [id, term]) {
      if (!store.ours(id as string, term as string)) return changed(0)
      const found = store.letters.filter(({ owner, streak, status }) => owner === id && streak && status === 'dead')
      for (const letter of found) Object.assign(letter, { status: 'redriving', streak: false })
      return changed(found.length)
    },
  },
} satisfies Record<string, Statement>

function lettersOf(store: Store, id: string, key: string): LetterRow[] {
  return store.letters.filter((one) => one.kind === 'subscription' && one.owner === id && one.key === key)
}

function isOver({ status }: LetterRow): boolean {
  return status === 'resolved' || status === 'discarded'
}

function isMarked(letter: LetterRow): boolean {
  return letter.kind === 'subscription' && (letter.status === 'redriving' || (letter.parks && isOver(letter)))
}

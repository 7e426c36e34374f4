/** Find or do: an id, a position, an aggregate or a page, and the keys that go without the pointer. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { PAGES } from './places.ts'
import type { Shared } from './state.tsx'

interface Choice {
  readonly kind: string
  readonly text: string
  readonly to: string
}

export function Palette({ go }: { go: Shared['go'] }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [words, setWords] = useState('')
  const [at, setAt] = useState(0)
  const choices = useMemo(() => choicesFor(words), [words])
  useEffect(() => {
    const open = () => {
      setWords('')
      setAt(0)
      dialog.current?.showModal()
    }
    const onKey = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key === 'k') {
        event.preventDefault()
        open()
      }
    }
    addEventListener('find', open)
    addEventListener('keydown', onKey)
    return () => {
      removeEventListener('find', open)
      removeEventListener('keydown', onKey)
    }
  }, [])
  const choose = (choice: Choice | undefined) => {
    if (choice === undefined) return
    dialog.current?.close()
    go(choice.to)
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt(Math.min(at + 1, choices.length - 1))
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0))
    else if (event.key === 'Enter') choose(choices[at])
    else return
    event.preventDefault()
  }
  return (
    <dialog
      ref={dialog}
      class="over palette"
      aria-label="Find or do"
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <input
        type="text"
        aria-label="Find or do"
        placeholder="An id, a position, order/1042, a type, or a page"
        value={words}
        onInput={(event) => {
          setWords(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={onKey}
      />
      <ul role="listbox" aria-label="Results">
        {choices.map((choice, index) => (
          <li key={choice.to} role="option" aria-selected={index === at} onClick={() => choose(choice)}>
            <span>{choice.kind}</span> {choice.text}
          </li>
        ))}
      </ul>
      <footer>↑ ↓ to choose, ↵ to go, esc to close</footer>
    </dialog>
  )
}

function choicesFor(words: string): Choice[] {
  const text = words.trim()
  const pages = PAGES.filter(([, name]) => name.toLowerCase().includes(text.toLowerCase())).map(
    ([path, name]): Choice => ({ kind: 'go', text: name, to: path === '' ? './' : path }),
  )
  if (text === '') return pages
  const found: Choice[] = []
  if (/^[\w.-]+\/.+/.test(text)) {
    found.push({ kind: 'list', text: `Events of ${text}`, to: `events?aggregate=${encodeURIComponent(text)}` })
  }
  if (/^\d+$/.test(text)) found.push({ kind: 'event', text: `Event at position ${text}`, to: `events/${text}` })
  else if (text.length >= 8 && !text.includes('/') && !text.includes('*')) {
    found.push({ kind: 'event', text: `Event ${text}`, to: `events/${encodeURIComponent(text)}` })
  }
  if (/^[a-z_*][\w.*]*$/i.test(text))
    found.push({ kind: 'list', text: `Events of type ${text}`, to: `events?on=${encodeURIComponent(text)}` })
  // A page that is called so comes before a guess.
  const isNamed = ({ text: name }: Choice) => name.toLowerCase().startsWith(text.toLowerCase())
  return [...pages.filter(isNamed), ...found, ...pages.filter((page) => !isNamed(page))]
}

const MOVES: Readonly<Record<string, string>> = Object.fromEntries(
  PAGES.map(([path, , key]) => [key, path === '' ? './' : path]),
)

export function Keys({ go, nextForm }: { go: Shared['go']; nextForm: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    let isGoing = false
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as Element
      if (event.metaKey || event.ctrlKey || event.altKey || target.closest('input, textarea, select, dialog')) return
      if (isGoing) {
        isGoing = false
        const to = MOVES[event.key]
        if (to !== undefined) go(to)
        return
      }
      if (event.key === 'g') {
        isGoing = true
        setTimeout(() => {
          isGoing = false
        }, 1_000)
      } else if (event.key === 't') nextForm()
      else if (event.key === '?') dialog.current?.showModal()
      else if (event.key === '/') {
        event.preventDefault()
        document.querySelector<HTMLInputElement>('.filter input')?.focus()
      } else if (event.key === 'j' || event.key === 'k') {
        const rows = [...document.querySelectorAll<HTMLElement>('.pick tbody tr[tabindex], a.cause')]
        const next = rows.indexOf(document.activeElement as HTMLElement) + (event.key === 'j' ? 1 : -1)
        rows[Math.max(0, next)]?.focus()
      } else if (event.key === 'n' || event.key === 'p') {
        document.querySelector<HTMLElement>(event.key === 'n' ? '[data-older]' : '[data-newer]')?.click()
      } else if (event.key === ' ' && target === document.body) {
        const pause = document.querySelector<HTMLElement>('[data-pause]')
        if (pause) event.preventDefault()
        pause?.click()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [go, nextForm])
  return (
    <dialog
      ref={dialog}
      class="over keys"
      aria-label="Keys"
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <h2>Keys</h2>
      <dl>
        <dt>
          <kbd>⌘K</kbd>
        </dt>
        <dd>find or do</dd>
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>filter</dd>
        <dt>
          <kbd>j k</kbd>
        </dt>
        <dd>rows</dd>
        <dt>
          <kbd>↵</kbd>
        </dt>
        <dd>open</dd>
        <dt>
          <kbd>n p</kbd>
        </dt>
        <dd>older, newer</dd>
        <dt>
          <kbd>space</kbd>
        </dt>
        <dd>pause the tail</dd>
        <dt>
          <kbd>t</kbd>
        </dt>
        <dd>form of time</dd>
        <dt>
          <kbd>esc</kbd>
        </dt>
        <dd>close</dd>
        {PAGES.map(([path, name, key]) => [
          <dt key={path}>
            <kbd>g {key}</kbd>
          </dt>,
          <dd key={`${path}.`}>{name}</dd>,
        ])}
      </dl>
      <form method="dialog">
        <button class="btn" type="submit">
          Close
        </button>
      </form>
    </dialog>
  )
}

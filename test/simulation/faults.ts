/** Faults that begin at random moments. */
import type { Cluster, Running } from './cluster.ts'
import type { Store } from './database/store.ts'
import type { Fault, Plan } from './plan.ts'
import type { World } from './world.ts'

/** Calls `onOver` when the last one has begun. */
export function planFaults(world: World, store: Store, cluster: Cluster, plan: Plan, onOver: () => void): void {
  let left = plan.faults.length === 0 ? 0 : plan.faultCount
  const next = () => {
    if (left-- <= 0) return onOver()
    const fault = world.random.pick(plan.faults)
    world.note(() => `fault: ${fault}`)
    BEGIN[fault](world, store, cluster)
    world.after(world.random.next() * plan.faultEveryMs, next)
  }
  world.after(world.random.next() * plan.faultEveryMs, next)
}

const BEGIN: Readonly<Record<Fault, (world: World, store: Store, cluster: Cluster) => void>> = {
  kill: (world, _, cluster) => some(world, cluster, ({ process }) => cluster.kill(process, 50)),
  // The host is gone, and the server does not know.
  vanish: (world, _, cluster) => some(world, cluster, ({ process }) => cluster.kill(process, 90_000)),
  pause: (world, _, cluster) => some(world, cluster, ({ process }) => process.pause(world.random.next() * 3_000)),
  'long pause': (world, _, cluster) =>
    some(world, cluster, ({ process }) => process.pause(world.random.between(5_000, 40_000))),
  cut: (world, _, cluster) => some(world, cluster, ({ path }) => path.cut(true)),
  outage: (world, _, cluster) =>
    some(world, cluster, ({ path, process }) => {
      process.cutUntil = world.now + world.random.pick([100, 2_000, 20_000])
      path.cut(true)
    }),
  'server restart': (world, store, cluster) => {
    store.isUp = false
    store.server++
    for (const { path, process } of cluster.running) {
      path.cut(false)
      process.loseLock(world.random.between(0, 100), world.random.between(1_000, 4_000))
    }
    world.after(world.random.between(50, 2_000), () => {
      store.isUp = true
    })
  },
  'lost lock': (world, _, cluster) =>
    some(world, cluster, ({ process }) =>
      process.loseLock(world.random.pick([0, 100, 15_000]), world.random.pick([10, 2_000, 30_000])),
    ),
  restart: (world, _, cluster) => some(world, cluster, (one) => cluster.stop(one)),
}

function some(world: World, { running }: Cluster, happens: (one: Running) => void): void {
  if (running.length > 0) happens(world.random.pick(running))
}

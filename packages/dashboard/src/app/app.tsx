import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { isSoonPassing, waitOf } from '../api/problem.ts';
import { slowRead } from '../api/slow-reads.ts';
import { makeRouter } from './router.tsx';

const Toasts = lazy(async () => ({ default: (await import('../parts/toasts.tsx')).Toasts }));

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchInterval: slowRead,
      retry: (failures, error) => isSoonPassing(error) && failures < 5,
      retryDelay: waitOf,
    },
    mutations: { retry: false },
  },
});
const router = makeRouter(queries);
// Load the files of the first screen now, while the session is being read.
for (const { routeId } of router.matchRoutes(router.latestLocation))
  void router.loadRouteChunk(router.routesById[routeId as keyof typeof router.routesById]);

/** The dashboard. */
export const App = () => (
  <QueryClientProvider client={queries}>
    <RouterProvider router={router} />
    <Suspense>
      <Toasts />
    </Suspense>
  </QueryClientProvider>
);

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}

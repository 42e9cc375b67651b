import { z } from 'zod';
import { maxSavedViews } from '../limits.ts';
import type { AllowKeys } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import { CreateSavedViewRequest, ListSavedViewsResponse, SavedView, UpdateSavedViewRequest } from './saved-views.ts';

const path = '/saved-views';
const view = z.object({ viewId: z.string().meta({ description: 'Id of the view' }) });
const missing = { 404: 'No such view, or it belongs to another person or team' };

/**
 * Only people are accepted, because agents do not use the dashboard. Even a viewer may save views, because a saved view has no effect on
 * other people.
 */
const people = { user: 'viewer' } as const satisfies AllowKeys;

export const savedViewRoutes = {
  listSavedViews: {
    method: 'GET',
    path,
    tag: 'saved_views',
    summary: 'List saved views',
    description: 'The views of the caller in the team. They are deleted when the person leaves the team.',
    allow: people,
    answer: { status: 200, description: 'The views, in the order of the person', schema: ListSavedViewsResponse },
  },
  createSavedView: {
    method: 'POST',
    path,
    tag: 'saved_views',
    summary: 'Save a view',
    allow: people,
    body: CreateSavedViewRequest,
    once: 'createSavedView',
    answer: { status: 201, description: 'The view', schema: SavedView },
    errors: {
      400: 'A wrong value',
      409: `The person has ${maxSavedViews} views in the team, or the Idempotency-Key was used with another body`,
    },
  },
  updateSavedView: {
    method: 'PATCH',
    path: `${path}/{viewId}`,
    tag: 'saved_views',
    summary: 'Change or move a saved view',
    allow: people,
    params: view,
    body: UpdateSavedViewRequest,
    answer: { status: 200, description: 'The view as it is now', schema: SavedView },
    errors: { 400: 'A wrong value', ...missing },
  },
  deleteSavedView: {
    method: 'DELETE',
    path: `${path}/{viewId}`,
    tag: 'saved_views',
    summary: 'Delete a saved view',
    allow: people,
    params: view,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: missing,
  },
} as const satisfies Record<string, Route>;

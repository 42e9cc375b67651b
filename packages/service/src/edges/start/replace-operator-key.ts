import { type DataPlace, withStore } from '../../platform/store/transfer/data-folder.ts';
import { replaceOperatorKey as replaceKey } from '../../team/access/keys/bootstrap.ts';

/** Replaces the operator's key of an installation, and returns the new one. The service may run meanwhile. */
export async function replaceOperatorKey(place: DataPlace): Promise<string> {
  return await withStore(place, (db) => replaceKey(db, place.dataFolder));
}

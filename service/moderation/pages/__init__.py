"""The pages, each a module with its router; `service.moderation.site` lists them."""

"""`specbudget review`: what a stretch of time holds about one service, in series and in words."""

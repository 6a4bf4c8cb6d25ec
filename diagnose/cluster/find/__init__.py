"""find"""
